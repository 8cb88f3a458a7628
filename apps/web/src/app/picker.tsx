import type { Item, Picker } from '@iris/client';
import { useState } from 'preact/hooks';
import type { Session } from './session.js';

type PickerItem = Extract<Item, { kind: 'picker' }>;

/** Value and label of everything that can be chosen; a model's value is `provider/model`. */
function choicesOf(picker: Picker): { value: string; label: string; is_current?: boolean }[] {
  if ('providers' in picker) {
    return picker.providers.flatMap((provider) =>
      provider.models.map((model) => ({
        value: `${provider.id}/${model.id}`,
        label: `${model.label} (${provider.label})`,
        is_current: picker.current_model === model.id && picker.current_provider === provider.id,
      })),
    );
  }
  return (picker.choices ?? []).map((choice) => ({ ...choice }));
}

export function PickerRow({ item, session }: { item: PickerItem; session: Session }) {
  const { picker, closed, type } = item;
  const [picked, setPicked] = useState<readonly string[]>([]);
  const choices = choicesOf(picker);
  const multi = 'multi' in picker && picker.multi === true;
  const answer = (value: string | string[]): void => session.attempt(() => session.client.select(picker.picker_id, value));
  const title = ('question' in picker && picker.question) || picker.title || type.slice('picker.'.length);
  if (closed) {
    const value = closed.value === undefined ? undefined : [closed.value].flat().join(', ');
    const label = choices.find((choice) => choice.value === value)?.label ?? value;
    return (
      <div class="picker closed">
        <strong>{title}</strong> {label ?? (closed.expired ? 'nobody answered in time' : 'closed')}
      </div>
    );
  }
  return (
    <fieldset class={`picker ${type.replace('.', '-')}`}>
      <legend>{title}</legend>
      {picker.body && <p>{picker.body}</p>}
      {'command' in picker && picker.command && <pre>{picker.command}</pre>}
      <div class="choices">
        {choices.map((choice) => (
          <button
            type="button"
            key={choice.value}
            class={choice.is_current || picked.includes(choice.value) ? 'current' : ''}
            onClick={() =>
              multi
                ? setPicked((before) =>
                    before.includes(choice.value) ? before.filter((v) => v !== choice.value) : [...before, choice.value],
                  )
                : answer(choice.value)
            }
          >
            {choice.label}
          </button>
        ))}
        {multi && (
          <button type="button" class="primary" disabled={picked.length === 0} onClick={() => answer([...picked])}>
            Answer
          </button>
        )}
      </div>
      {type === 'picker.clarify' && (!('allow_text' in picker) || picker.allow_text !== false) && (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            const text = String(new FormData(event.currentTarget).get('text')).trim();
            if (text !== '') answer(text);
          }}
        >
          <input name="text" placeholder="Your answer" aria-label="Your answer" autocomplete="off" />
        </form>
      )}
    </fieldset>
  );
}
