import type { Clock } from '@iris/runtime';

/** A request as it came over the wire. */
export interface ProviderRequest {
  readonly method: string;
  /** Path, from the root of the provider. */
  readonly path: string;
  /** By names in small letters. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: Uint8Array;
}
export interface ProviderAnswer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** What a provider does instead of what it should. */
export interface Trouble {
  /** Milliseconds before anything happens. */
  readonly delay_ms?: number;
  /** The request is refused with this; absent: it is taken. */
  readonly answer?: ProviderAnswer;
  /** It is taken (unless `answer` says otherwise), and nobody ever hears of it. */
  readonly silent?: true;
  /** How often; default: for ever. */
  readonly times?: number;
}

/** Troubles by address (a token, a topic, a subscription), `*` for everyone. */
export interface Troubles {
  set(address: string, ...troubles: readonly Trouble[]): void;
  clear(address?: string): void;
}

export interface TroubleBook extends Troubles {
  next(address: string): Trouble | undefined;
}

export function troubles(): TroubleBook {
  const book = new Map<string, { trouble: Trouble; left: number }[]>();
  return {
    set(address, ...list) {
      book.set(
        address,
        list.map((trouble) => ({ trouble, left: trouble.times ?? Number.POSITIVE_INFINITY })),
      );
    },
    clear(address) {
      if (address === undefined) book.clear();
      else book.delete(address);
    },
    next(address) {
      for (const key of [address, '*']) {
        const list = book.get(key) ?? [];
        const one = list.find(({ left }) => left > 0);
        if (one === undefined) continue;
        one.left--;
        return one.trouble;
      }
      return undefined;
    },
  };
}

/** Applies what the book says about this address; `take` does what the provider is there for. Undefined: no answer, ever. */
export async function withTrouble(
  book: TroubleBook,
  clock: Clock,
  address: string,
  take: () => ProviderAnswer,
): Promise<ProviderAnswer | undefined> {
  const trouble = book.next(address);
  if (trouble?.delay_ms !== undefined) await new Promise<void>((resolve) => void clock.after(trouble.delay_ms!, resolve));
  const answer = trouble?.answer ?? take();
  return trouble?.silent ? undefined : answer;
}

export const json = (status: number, value: unknown, headers: Record<string, string> = {}): ProviderAnswer => ({
  status,
  headers: { 'content-type': 'application/json', ...headers },
  body: JSON.stringify(value),
});

export const textOf = (body: Uint8Array): string => new TextDecoder().decode(body);
