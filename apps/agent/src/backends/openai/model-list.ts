import type { Clock } from '@iris/runtime';
import type { Endpoint } from './endpoint.js';
import type { ModelEntry } from './pieces.js';

/** Which models an endpoint has, asked for seldom. */
export interface ModelList {
  /** Rejects with an `EndpointFault` when the endpoint does not say. @param fresh ask again even if it was asked lately */
  get(signal: AbortSignal, fresh?: boolean): Promise<readonly ModelEntry[]>;
  /** Ask without waiting, unless it is known. */
  warm(): void;
  /** Tokens that a model can hold, when the endpoint has said so. */
  contextOf(id: string): number | undefined;
  close(): void;
}

const fresh_ms = 10 * 60_000;

export function modelList(endpoint: Pick<Endpoint, 'models'>, clock: Clock): ModelList {
  let known: readonly ModelEntry[] | undefined;
  let asked_at = Number.NEGATIVE_INFINITY;
  const closing = new AbortController();
  const get: ModelList['get'] = async (signal, fresh = false) => {
    if (known !== undefined && !fresh && clock.now() - asked_at < fresh_ms) return known;
    known = await endpoint.models(signal);
    asked_at = clock.now();
    return known;
  };
  return {
    get,
    warm() {
      if (clock.now() - asked_at < fresh_ms) return;
      // Also when it fails: an endpoint without a list is not asked with every turn.
      asked_at = clock.now();
      get(closing.signal, true).catch(() => {});
    },
    contextOf: (id) => known?.find((entry) => entry.id === id)?.context_tokens,
    close: () => closing.abort(new Error('the agent has stopped')),
  };
}

/** As devices show it: without the vendor's name. */
export const shortName = (model: string): string => model.slice(model.lastIndexOf('/') + 1) || model;

/** Models by vendor, where their names say one; the others are the endpoint's own. */
export function byProvider(models: readonly { readonly id: string }[], host: string) {
  const providers = new Map<string, { id: string; label: string }[]>();
  for (const { id } of models.slice(0, models_max)) {
    const at = id.indexOf('/');
    const vendor = at > 0 ? id.slice(0, at) : host;
    const list = providers.get(vendor) ?? [];
    if (list.length === 0) providers.set(vendor, list);
    list.push({ id: at > 0 ? id.slice(at + 1) : id, label: at > 0 ? id.slice(at + 1) : id });
  }
  return [...providers].slice(0, providers_max).map(([id, list]) => ({ id, label: id, models: list }));
}
/** What a picker can carry. */
const models_max = 1_000;
const providers_max = 200;

/** The model a person means: its name, or the only one that has this in it. Undefined: none; several: which. */
export function meant(models: readonly { readonly id: string }[], words: string): string | readonly string[] | undefined {
  const said = words.trim().toLowerCase();
  const exact = models.find(({ id }) => id.toLowerCase() === said) ?? models.find(({ id }) => shortName(id).toLowerCase() === said);
  if (exact) return exact.id;
  const like = models.filter(({ id }) => id.toLowerCase().includes(said)).map(({ id }) => id);
  return like.length <= 1 ? like[0] : like;
}
