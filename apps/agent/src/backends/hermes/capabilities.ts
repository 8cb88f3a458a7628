import { fieldsOf, stringOf } from '../openai/json.js';

/** What a Hermes says it can. */
export interface Capabilities {
  readonly model: string | undefined;
  /** The same run asked for twice is one run; from the version that has this on, runs know their session's past. */
  readonly idempotent: boolean;
  readonly steer: boolean;
  readonly model_options: boolean;
  readonly sessions: boolean;
}

/** @returns undefined when it is no Hermes, or one without runs: then it is an endpoint like any other */
export function capabilitiesOf(value: unknown): Capabilities | undefined {
  const { object, features, model } = fieldsOf(value);
  const can = fieldsOf(features);
  if (object !== 'hermes.api_server.capabilities' || can.run_submission !== true || can.run_events_sse !== true) return undefined;
  return {
    model: stringOf(model),
    idempotent: fieldsOf(can.runs_idempotency).supported === true,
    steer: can.run_steer === true,
    model_options: can.model_options === true,
    sessions: can.session_resources === true,
  };
}

/** `GET /api/model/options`: providers with their models, by whatever names a version gives them. */
export function modelOptionsOf(value: unknown): { id: string; label: string; models: { id: string; label: string }[] }[] {
  const { providers } = fieldsOf(value);
  if (!Array.isArray(providers)) return [];
  return providers.flatMap((entry) => {
    const fields = fieldsOf(entry);
    const id = stringOf(fields.slug) ?? stringOf(fields.id) ?? stringOf(fields.provider) ?? stringOf(fields.name);
    const list = Array.isArray(fields.models) ? fields.models : [];
    const models = list.flatMap((model) => {
      const one = stringOf(model) ?? stringOf(fieldsOf(model).id) ?? stringOf(fieldsOf(model).model) ?? stringOf(fieldsOf(model).name);
      return one === undefined ? [] : [{ id: one, label: stringOf(fieldsOf(model).label) ?? one }];
    });
    return id === undefined || models.length === 0 ? [] : [{ id, label: stringOf(fields.label) ?? stringOf(fields.name) ?? id, models }];
  });
}
