/**
 * An OpenAI-compatible model that does what the newest user message says between double brackets, and remembers what it was asked:
 *
 *   [[say words]]              streams the words
 *   [[think thoughts | words]] streams reasoning, then the words
 *   [[count 20 50 w]]          w1 … w20, 50 ms apart
 *   [[run command]]            calls the terminal, then says `Done:` and the beginning of what came back
 *   [[ask question | a | b]]   asks the person with the clarify tool, then says `Heard:` and the answer
 *   [[fail]]                   answers 400
 *
 * Anything else (titles and the like) is answered with one word.
 */
import { createServer } from 'node:http';

export async function startModelServer() {
  /** Every completion: what was asked, and whether whoever asked went away. */
  const asked = [];
  const server = createServer((request, response) => void answer(request, response, asked).catch(() => response.destroy()));
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}/v1`,
    asked,
    /** Completions for a message with these words. */
    about: (words) => asked.filter(({ text }) => text.includes(words)),
    close: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}

async function answer(request, response, asked) {
  let body = '';
  for await (const chunk of request) body += chunk;
  if (request.method === 'GET') {
    const models = ['scripted-small', 'scripted-large'].map((id) => ({ id, object: 'model', context_length: 200_000 }));
    response.setHeader('content-type', 'application/json');
    return void response.end(JSON.stringify({ object: 'list', data: models }));
  }
  const question = JSON.parse(body);
  const messages = question.messages ?? [];
  const texts = messages.filter(({ role }) => role === 'user').map(({ content }) => textOf(content));
  const text = texts.at(-1) ?? '';
  const last = messages.at(-1);
  const entry = { text, model: question.model, messages, stream: question.stream === true, aborted: false };
  asked.push(entry);
  const words = [...text.matchAll(/\[\[(.*?)\]\]/gs)].at(-1)?.[1] ?? 'say ok';
  const [verb, rest] = [words.split(' ')[0], words.slice(words.indexOf(' ') + 1)];
  if (verb === 'fail') {
    response.writeHead(400, { 'content-type': 'application/json' });
    return void response.end(JSON.stringify({ error: { message: 'the scripted model refuses', type: 'invalid_request_error' } }));
  }
  response.once('close', () => {
    entry.aborted = !response.writableFinished;
  });
  const say = last?.role === 'tool' ? afterTool(verb, textOf(last.content)) : firstTime(verb, rest);
  if (entry.stream) await stream(response, question, say);
  else whole(response, question, say);
}

function firstTime(verb, rest) {
  switch (verb) {
    case 'think': {
      const [thoughts, words] = rest.split(' | ');
      return { reasoning: thoughts, chunks: chunksOf(words), pause_ms: 15 };
    }
    case 'count': {
      const [count, pause_ms, word] = rest.split(' ');
      return { chunks: Array.from({ length: Number(count) }, (_, i) => `${word}${i + 1} `), pause_ms: Number(pause_ms) };
    }
    case 'run':
      return { chunks: ['Let me run ', `${rest.slice(-40)}. `], tool: { name: 'terminal', args: { command: rest } }, pause_ms: 15 };
    case 'ask': {
      const [question, ...choices] = rest.split(' | ');
      return { chunks: [], tool: { name: 'clarify', args: { question, choices } }, pause_ms: 15 };
    }
    default:
      return { chunks: chunksOf(verb === 'say' ? rest : 'ok'), pause_ms: 15 };
  }
}

const afterTool = (verb, result) => ({ chunks: chunksOf(`${verb === 'ask' ? 'Heard' : 'Done'}: ${result.slice(0, 300)}`), pause_ms: 15 });

const chunksOf = (text) => text.split(/(?<= )/);
const textOf = (content) =>
  typeof content === 'string' ? content : (content ?? []).map((part) => (part.type === 'text' ? part.text : '')).join(' ');
const usage = { prompt_tokens: 1200, completion_tokens: 34, total_tokens: 1234 };

async function stream(response, { model }, { chunks, reasoning, tool, pause_ms }) {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const send = (delta, finish_reason = null, more = {}) => {
    const chunk = {
      id: 'chatcmpl-1',
      object: 'chat.completion.chunk',
      created: 1,
      model,
      choices: [{ index: 0, delta, finish_reason }],
      ...more,
    };
    response.write(`data: ${JSON.stringify(chunk)}\n\n`);
  };
  send({ role: 'assistant', content: '' });
  if (reasoning !== undefined) for (const part of chunksOf(reasoning)) send({ reasoning_content: part });
  for (const chunk of chunks) {
    if (response.destroyed) return;
    send({ content: chunk });
    await new Promise((resolve) => setTimeout(resolve, pause_ms));
  }
  if (tool !== undefined)
    send({
      tool_calls: [
        { index: 0, id: `call_${Date.now()}`, type: 'function', function: { name: tool.name, arguments: JSON.stringify(tool.args) } },
      ],
    });
  send({}, tool === undefined ? 'stop' : 'tool_calls', { usage });
  response.end('data: [DONE]\n\n');
}

function whole(response, { model }, { chunks, tool }) {
  const calls = tool && [
    { id: `call_${Date.now()}`, type: 'function', function: { name: tool.name, arguments: JSON.stringify(tool.args) } },
  ];
  const message = { role: 'assistant', content: chunks.join(''), ...(calls ? { tool_calls: calls } : {}) };
  response.setHeader('content-type', 'application/json');
  const choices = [{ index: 0, message, finish_reason: calls ? 'tool_calls' : 'stop' }];
  response.end(JSON.stringify({ id: 'chatcmpl-1', object: 'chat.completion', created: 1, model, choices, usage }));
}
