import { gramSeed, gramsOf } from './grams.js';
import { searchText } from './search-text.js';

/** What is stored with a message so that search finds it; the grams as Postgres writes an array. */
export function foldedText(tenant_id: string, text: string): { readonly search_text: string; readonly search_grams: string } {
  const search_text = searchText(text);
  return { search_text, search_grams: arrayOf(gramsOf(gramSeed(tenant_id), search_text)) };
}

export const arrayOf = (numbers: readonly number[]): string => `{${numbers.join(',')}}`;
