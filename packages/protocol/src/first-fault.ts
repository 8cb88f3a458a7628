import type { TSchema } from 'typebox';

/** What of JSON Schema our schemas use; a test holds that they use nothing else. */
interface Schema {
  readonly type?: 'object' | 'array' | 'string' | 'integer' | 'number' | 'boolean' | 'null';
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly patternProperties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly minimum?: number;
  readonly maximum?: number;
}

/**
 * The first place where a value breaks its schema, as `field: what it must be`; undefined when it holds. Stops there: a list of a
 * hundred thousand wrong items costs no more than one, which the validator's own list of errors does not promise.
 */
export const firstFault = (schema: TSchema, value: unknown): string | undefined => fault(schema as Schema, value, '');

function fault(schema: Schema, value: unknown, path: string): string | undefined {
  const says = (what: string): string => `${path === '' ? 'payload' : path}: ${what}`;
  if (schema.anyOf !== undefined) {
    if (schema.anyOf.some((one) => fault(one, value, path) === undefined)) return undefined;
    const kinds = [...new Set(schema.anyOf.map((one) => one.type ?? 'value'))];
    // Inside a list or text of the right kind, say what is wrong there.
    const near = schema.anyOf.find((one) => one.type === typeOf(value));
    return (near && fault(near, value, path)) ?? says(`must be ${kinds.join(' or ')}`);
  }
  if (schema.enum !== undefined) return schema.enum.includes(value) ? undefined : says(`must be one of ${schema.enum.join(', ')}`);
  if (schema.const !== undefined) return value === schema.const ? undefined : says(`must be ${String(schema.const)}`);
  switch (schema.type) {
    case 'string': {
      if (typeof value !== 'string') return says('must be a string');
      const { minLength = 0, maxLength = Number.POSITIVE_INFINITY } = schema;
      const length = value.length <= maxLength && value.length >= minLength * 2 ? value.length : [...value].length;
      if (length < minLength) return says(minLength === 1 ? 'must not be empty' : `must have at least ${minLength} characters`);
      return length > maxLength ? says(`must have at most ${maxLength} characters`) : undefined;
    }
    case 'integer':
    case 'number': {
      if (typeof value !== 'number' || !Number.isFinite(value)) return says('must be a number');
      if (schema.type === 'integer' && !Number.isInteger(value)) return says('must be an integer');
      if (value < (schema.minimum ?? value)) return says(`must be at least ${schema.minimum}`);
      return value > (schema.maximum ?? value) ? says(`must be at most ${schema.maximum}`) : undefined;
    }
    case 'boolean':
      return typeof value === 'boolean' ? undefined : says('must be true or false');
    case 'null':
      return value === null ? undefined : says('must be null');
    case 'array': {
      if (!Array.isArray(value)) return says('must be an array');
      if (value.length < (schema.minItems ?? 0)) return says(`must have at least ${schema.minItems} items`);
      if (value.length > (schema.maxItems ?? value.length)) return says(`must have at most ${schema.maxItems} items`);
      return schema.items && firstOf(value, (item, at) => fault(schema.items!, item, `${path}[${at}]`));
    }
    case 'object': {
      if (typeof value !== 'object' || value === null || Array.isArray(value)) return says('must be an object');
      const at = (key: string) => (path === '' ? key : `${path}.${key}`);
      const missing = schema.required?.find((key) => (value as Record<string, unknown>)[key] === undefined);
      if (missing !== undefined) return `${at(missing)}: missing`;
      for (const [key, inner] of Object.entries(schema.properties ?? {})) {
        const given = (value as Record<string, unknown>)[key];
        const found = given === undefined ? undefined : fault(inner, given, at(key));
        if (found !== undefined) return found;
      }
      for (const [pattern, inner] of Object.entries(schema.patternProperties ?? {})) {
        const names = new RegExp(pattern);
        const entries = Object.entries(value).filter(([key]) => names.test(key));
        const found = firstOf(entries, ([key, given]) => fault(inner, given, at(key.slice(0, 64))));
        if (found !== undefined) return found;
      }
      return undefined;
    }
    default:
      return undefined;
  }
}

function firstOf<T>(items: readonly T[], test: (item: T, at: number) => string | undefined): string | undefined {
  for (let at = 0; at < items.length; at++) {
    const found = test(items[at]!, at);
    if (found !== undefined) return found;
  }
  return undefined;
}

const typeOf = (value: unknown): string => (value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value);
