import type { Item } from '@iris/client';

export function ToolRow({ item }: { item: Extract<Item, { kind: 'tool' }> }) {
  const { tool, end, note } = item;
  const state = end ? (end.ok ? 'ok' : 'bad') : 'running';
  return (
    <details class={`tool ${state}`}>
      <summary>
        <span class="mark" aria-hidden="true" />
        <code>{tool.name}</code> <span class="preview">{tool.preview}</span>
        {!end && note && <span class="note">{note}</span>}
        {end?.duration !== undefined && <span class="note">{end.duration.toFixed(1)} s</span>}
      </summary>
      {tool.args !== undefined && <pre>{JSON.stringify(tool.args, null, 2)}</pre>}
      {end?.output_preview && <pre>{end.output_preview}</pre>}
    </details>
  );
}
