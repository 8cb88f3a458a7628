/** Words that say little, in the languages people greet a demo in. */
const small = new Set(
  'a an and are at be can could do does for from how i in is it me my of on or please tell that the this to was we what when where which who why with would you your der die das ein eine ich du wir ist sind und oder bitte wie was wo wann warum mit für von im am zu le la les un une et de du des est'.split(
    ' ',
  ),
);

/** A title as a model would give it: the first few words that say something. At most 60 code points; undefined when there are none. */
export function titleOf(text: string): string | undefined {
  const said = text.match(/[\p{L}\p{N}][\p{L}\p{N}\p{M}'’-]*/gu) ?? [];
  const telling = said.filter((word) => !small.has(word.toLowerCase())).slice(0, 5);
  const title = [...(telling.length > 0 ? telling : said.slice(0, 5)).join(' ')].slice(0, 60).join('').trim();
  return title === '' ? undefined : title[0]!.toUpperCase() + title.slice(1);
}
