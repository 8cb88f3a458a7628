import { type FrameType, frameTypes, rowOf } from '@iris/protocol';

/** What an id names. `own`: a name that the peer gives its own things, such as `client_ref`; never a look-up of ours. */
export type IdKind = 'chat' | 'thread' | 'message' | 'picker' | 'media' | 'media_ref' | 'turn' | 'own';

/** Every field of the protocol that can hold an id, and what it names. A field of another name fails the matrix until it stands here. */
const kindOf = new Map<string, IdKind>([
  ['chat_id', 'chat'],
  ['parent_chat_id', 'chat'],
  ['thread_id', 'thread'],
  ['turn_id', 'turn'],
  ['open_turns', 'turn'],
  ['message_id', 'message'],
  ['message_ids', 'message'],
  ['before_message_id', 'message'],
  ['reply_to', 'message'],
  ['picker_id', 'picker'],
  ['pickers', 'picker'],
  ['media_id', 'media'],
  ['thumb_media_id', 'media'],
  ['media_refs', 'media_ref'],
  ['media_ref', 'media_ref'],
  ['removed', 'message'],
  ['missing', 'message'],
  ['device_id', 'own'],
  ['install_id', 'own'],
  ['boot_id', 'own'],
  ['client_ref', 'own'],
]);
/** Names of models and providers in a picker: shown as they are, looked up nowhere. */
const shown = /^providers\./;

export interface IdPlace {
  readonly type: FrameType;
  readonly side: 'up' | 'agent_up';
  /** `chat_id` of the envelope, or `payload.` and the way to it; `[]` stands for the one entry of a list. */
  readonly path: string;
  readonly kind: IdKind;
}

interface Shape {
  readonly type?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly properties?: Readonly<Record<string, Shape>>;
  readonly items?: Shape;
  readonly anyOf?: readonly Shape[];
}

const nameOf = (path: string) => path.replaceAll('[]', '').split('.').at(-1)!;

/** Paths of strings that may be ids: by their name, or because they have an id's bounds. */
function idsIn(shape: Shape, path = ''): string[] {
  if (shape.anyOf) return [...new Set(shape.anyOf.flatMap((one) => idsIn(one, path)))];
  if (shape.type === 'array') return shape.items ? idsIn(shape.items, `${path}[]`) : [];
  if (shape.type === 'object')
    return Object.entries(shape.properties ?? {}).flatMap(([name, one]) => idsIn(one, path === '' ? name : `${path}.${name}`));
  if (shape.type !== 'string' || shown.test(path)) return [];
  const bounded = shape.minLength === 1 && shape.maxLength === 128;
  return bounded || kindOf.has(nameOf(path)) || /_(id|ids|ref|refs)$/.test(nameOf(path)) ? [path] : [];
}

/** @throws for a field whose kind nobody has said */
function kindAt(type: string, path: string): IdKind {
  const kind = kindOf.get(nameOf(path));
  if (kind === undefined) throw new Error(`${type}: say in id-places.ts what ${path} names`);
  return kind;
}

/** Every place of every frame that a device or an agent sends in which an id can stand, by the frame table. */
export function idPlaces(): IdPlace[] {
  return frameTypes.flatMap((type) => {
    const row = rowOf(type)!;
    const places: IdPlace[] = [];
    for (const side of ['up', 'agent_up'] as const) {
      const part = row[side];
      if (part === undefined) continue;
      // The envelope's are tried on every frame, also where the row says that they are not looked at.
      const envelope = side === 'up' ? (['chat_id', 'thread_id'] as const) : (['chat_id', 'thread_id', 'turn_id'] as const);
      for (const path of envelope) places.push({ type, side, path, kind: kindAt(type, path) });
      for (const path of idsIn(part.schema as Shape)) places.push({ type, side, path: `payload.${path}`, kind: kindAt(type, path) });
    }
    return places;
  });
}

/** A copy of `value` with `id` at the path; lists on the way get one entry. */
export function placed(value: unknown, path: string, id: unknown): unknown {
  if (path === '') return id;
  if (path.startsWith('[]')) {
    const [first] = Array.isArray(value) ? (value as unknown[]) : [];
    return [placed(first, path.slice(2).replace(/^\./, ''), id)];
  }
  const end = path.search(/\.|\[\]/);
  const name = end === -1 ? path : path.slice(0, end);
  const rest = end === -1 ? '' : path.slice(end).replace(/^\./, '');
  const object = typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  return { ...object, [name]: placed(object[name], rest, id) };
}

/** Whether something stands there already. */
export function stands(value: unknown, path: string): boolean {
  const name = path.split('[]')[0]!;
  const found = name.split('.').reduce<unknown>((at, part) => (at as Record<string, unknown> | undefined)?.[part], value);
  return found !== undefined && found !== null;
}
