import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import sharp from 'sharp';

/**
 * What a person sees of an agent, row by row of the agent link. Each row gets a scene with a device, the scripted model and the means to
 * break things, throws when what was seen is not what the link promises, and returns a few words of evidence.
 */

const quick = { within_ms: 30_000 };
const long = { within_ms: 90_000 };

const texts = (frames) => frames.map(({ payload }) => payload.final_text ?? payload.text ?? '');
const ofTurn = (device, from) => device.received.all.slice(from).map(({ frame }) => frame);
const fail = (why) => {
  throw new Error(why);
};
const short = (frames) =>
  frames
    .filter(({ type }) => type !== 'message.update')
    .map(({ type, payload }) => `${type}${payload.text ? `(${payload.text.slice(0, 40)})` : ''}`)
    .join(' ');

/** Sends, and gives everything up to the turn's end. */
async function turn(device, text, { end = quick, during, more = {} } = {}) {
  const from = device.received.all.length;
  const sent = await device.send(text, more);
  if (sent.type !== 'message') fail(`the send was answered with ${sent.type}: ${sent.payload.message}`);
  await during?.(from);
  await idle(device, from, end, text);
  return ofTurn(device, from);
}

async function idle(device, from, end, text) {
  const found = () => ofTurn(device, from).some(({ type }) => type === 'agent.idle') || undefined;
  const { patience } = device;
  try {
    await patience.wait(found, { ...end, describe: () => '' });
  } catch {
    fail(`no agent.idle after "${text}": ${short(ofTurn(device, from))}`);
  }
}
const sees = (device, from, test, what, limit = quick) =>
  device.patience.wait(() => ofTurn(device, from).find(test), { ...limit, describe: () => `${what}: ${short(ofTurn(device, from))}` });

/** Of what no frame tells. */
async function until(found, why, within_ms = 30_000) {
  for (const give_up = Date.now() + within_ms; !found(); await new Promise((resolve) => setTimeout(resolve, 50)))
    if (Date.now() > give_up) fail(why);
}
const said = (frames) => frames.filter(({ type, payload }) => (type === 'message.stop' || type === 'message') && payload.role !== 'user');
const finals = (frames) => texts(said(frames).filter(({ payload }) => payload.role !== 'system'));
const includes = (frames, words) => finals(frames).some((text) => text.includes(words));
const count = (frames, words) => finals(frames).filter((text) => text.includes(words)).length;
const growing = (frames) => frames.filter(({ type, payload }) => type === 'message.update' && payload.role !== 'user');

const picture = (width, height) =>
  sharp({ create: { width, height, channels: 3, background: { r: 200, g: 40, b: 90 } } })
    .png()
    .toBuffer();
const hashOf = (bytes) => createHash('sha256').update(bytes).digest('hex');

export const rows = {
  async text({ device }) {
    const frames = await turn(device, '[[say Good morning to you]]');
    if (count(frames, 'Good morning to you') !== 1) fail(`said: ${JSON.stringify(finals(frames))}`);
    if (said(frames).some(({ payload }) => payload.reasoning)) fail('with a reasoning that the model did not have');
    return 'one final';
  },
  async memory({ device, model }) {
    await turn(device, 'My word is heliotrope. [[say noted]]');
    await turn(device, 'And now? [[say second]]');
    const { messages } = model.about('And now?')[0];
    if (!JSON.stringify(messages).includes('heliotrope')) fail('the second question did not carry the first');
    return 'the second turn knew the first';
  },
  async streaming({ device }) {
    const frames = await turn(device, '[[count 60 40 s]]');
    if (!includes(frames, 's60')) fail(`said: ${JSON.stringify(finals(frames))}`);
    const lengths = growing(frames).map(({ payload }) => payload.text.length);
    if (new Set(lengths).size < 3) fail(`${lengths.length} updates`);
    return `${lengths.length} updates before the final`;
  },
  async reasoning({ device }) {
    const frames = await turn(device, '[[think I wonder about this | And this is it]]');
    if (!includes(frames, 'And this is it')) fail(`said: ${JSON.stringify(finals(frames))}`);
    if (!said(frames).some(({ payload }) => (payload.reasoning ?? '').includes('I wonder'))) fail('no reasoning');
    return 'in message.stop';
  },
  async tools({ device }) {
    const frames = await turn(device, '[[run echo iris-$((40+2))]]');
    const start = frames.find(({ type }) => type === 'tool.start') ?? fail(`no tool.start: ${short(frames)}`);
    const end = frames.find(({ type, payload }) => type === 'tool.end' && payload.index === start.payload.index) ?? fail('no tool.end');
    if (!includes(frames, 'iris-42')) fail(`said: ${JSON.stringify(finals(frames))}`);
    const output = String(end.payload.output_preview ?? '').includes('iris-42');
    return `${start.payload.name}, ok ${end.payload.ok}, ${output ? 'with output' : 'without output'}${start.payload.args === undefined ? ', without args' : ''}`;
  },
  async footer({ device }) {
    const frames = await turn(device, '[[say with a footer]]');
    const { model, tokens, runtime } = said(frames).find(({ payload }) => payload.role !== 'system')?.payload ?? {};
    if (runtime?.model === undefined && model === undefined) fail(`runtime: ${JSON.stringify(runtime)}`);
    return Object.entries({ model, tokens, ...runtime })
      .map(([name, value]) => `${name} ${value}`)
      .join(', ');
  },
  async approval({ device, work, approvals }) {
    const answer = async (value, wanted) => {
      const command = `rm -rf ${work}/${value}-$((1+1)) && echo gone-${value}-$((1+1))`;
      const frames = await turn(device, `[[run ${command}]]`, {
        end: long,
        async during(from) {
          const asked = await sees(device, from, ({ type }) => type === 'picker.approval', 'no picker.approval');
          const { picker_id, choices } = asked.payload;
          if (!choices.some((one) => one.value === value)) fail(`choices: ${choices.map((one) => one.value)}`);
          const ack = await device.request('picker.select', { picker_id, value });
          if (ack.type !== 'ack') fail(`picker.select: ${ack.payload.message}`);
        },
      });
      if (includes(frames, `gone-${value}-2`) !== wanted) fail(`after ${value}: ${JSON.stringify(finals(frames))}`);
    };
    for (const value of approvals) await answer(value, value !== 'deny');
    return `asked and answered: ${approvals.join(', then ')}`;
  },
  async clarify({ device }) {
    const frames = await turn(device, '[[ask Which colour? | red | blue]]', {
      end: long,
      async during(from) {
        const asked = await sees(device, from, ({ type }) => type === 'picker.clarify', 'no picker.clarify', { within_ms: 10_000 });
        const { picker_id, choices } = asked.payload;
        const { value } = choices.find(({ label }) => label.includes('blue')) ?? fail(`choices: ${JSON.stringify(choices)}`);
        await device.request('picker.select', { picker_id, value });
      },
    });
    if (!includes(frames, 'blue')) fail(`said: ${JSON.stringify(finals(frames))}`);
    return 'asked and answered';
  },
  async stop({ device, model, work }) {
    const stopped = async (text, begun) => {
      let stopped_at = 0;
      const frames = await turn(device, text, {
        async during(from) {
          await begun(from);
          stopped_at = Date.now();
          const answer = await device.request('agent.stop', {}, { chat_id: 'android:default' });
          if (answer.type !== 'ack') fail(`agent.stop: ${answer.payload.message}`);
        },
      });
      const took = Date.now() - stopped_at;
      if (took > 4_000) fail(`idle came ${took} ms after the stop`);
      return { frames, took };
    };
    const words = '[[count 400 50 n]]';
    const streaming = await stopped(words, async () => {
      await until(() => model.about(words).length > 0, 'the model was not asked');
    });
    if (includes(streaming.frames, 'n400')) fail('it went on to the end');
    const tool = await stopped(`[[run sleep 5 && touch ${work}/finished && echo finished]]`, (from) =>
      sees(device, from, ({ type }) => type === 'tool.start', 'no tool.start', { within_ms: 2_500 }).catch(() => {}),
    );
    // Longer than the tool would have taken.
    await new Promise((resolve) => setTimeout(resolve, 6_000));
    if (existsSync(`${work}/finished`)) fail('the tool went on to its end');
    const after = await turn(device, '[[say and on we go]]');
    if (count(after, 'and on we go') !== 1) fail(`afterwards: ${JSON.stringify(finals(after))}`);
    return `idle ${streaming.took} ms after it in an answer, ${tool.took} ms in a tool, whose process was ended`;
  },
  async steer({ device, model }) {
    const from = device.received.all.length;
    const frames = await turn(device, '[[run sleep 3 && echo slept]]', {
      end: long,
      async during(from) {
        await sees(device, from, ({ type }) => type === 'tool.start' || type === 'commentary', 'no sign of the tool');
        await device.request('agent.steer', { text: 'mind the gap' }, { chat_id: 'android:default' });
      },
    });
    if (!includes(frames, 'slept')) fail(`said: ${JSON.stringify(finals(frames))}`);
    const heard = () => model.asked.some(({ messages }) => JSON.stringify(messages).includes('mind the gap'));
    await until(heard, 'the steer was not heard');
    await sees(device, from, ({ type }) => type === 'agent.idle', 'no idle');
    const within = model.about('[[run sleep 3').some(({ messages }) => JSON.stringify(messages).includes('mind the gap'));
    // As the next turn it has an end of its own.
    if (!within)
      await device.patience.wait(() => ofTurn(device, from).filter(({ type }) => type === 'agent.idle').length > 1 || undefined, {
        ...quick,
        describe: () => 'the next turn does not end',
      });
    return within ? 'used in the running turn' : 'became the next turn';
  },
  async failure({ device }) {
    const frames = await turn(device, '[[fail]]', { end: long });
    if (!said(frames).length) fail('nothing was said');
    return JSON.stringify(texts(said(frames)).at(-1).slice(0, 60));
  },
  async commands({ device }) {
    const catalog = await device.request('commands.catalog', {});
    const names = catalog.payload.commands.map(({ name }) => name);
    if (names.length === 0) fail('an empty catalog');
    const frames = await turn(device, '/status');
    if (!said(frames).length) fail('/status said nothing');
    return `${names.length} in the catalog, /status answered`;
  },
  async 'picker.model'({ device }) {
    const frames = await turn(device, '/model', {
      end: long,
      async during(from) {
        const asked = await sees(device, from, ({ type }) => type === 'picker.model', 'no picker.model', { within_ms: 10_000 });
        const { picker_id, providers } = asked.payload;
        const provider =
          providers.find(({ models }) => models.some(({ id }) => id.startsWith('scripted'))) ??
          fail(JSON.stringify(providers).slice(0, 200));
        const model = provider.models.find(({ id }) => id.startsWith('scripted'));
        await device.request('picker.select', { picker_id, value: `${provider.id}/${model.id}` });
      },
    });
    return JSON.stringify(texts(said(frames)).at(-1)?.slice(0, 60));
  },
  async title({ device }) {
    const from = device.received.all.length;
    const sent = await device.send('[[say a thread of its own]]', { auto_thread: true });
    const renamed = await sees(device, from, ({ type }) => type === 'channel.renamed', 'no channel.renamed');
    await idle(device, from, quick, 'the thread');
    return JSON.stringify(renamed.payload.name) + (sent.thread_id ? '' : ' (not in a thread)');
  },
  async 'media in'({ device, model, upload }) {
    const words = 'the-word-in-the-file';
    await upload(device, 'mu_in', Buffer.from(`It says ${words}.\n`), {
      start: { kind: 'file', mime: 'text/plain', filename: 'notes.txt' },
    });
    const frames = await turn(device, '[[say read it]]', { more: { media_refs: ['mu_in'] } });
    if (!includes(frames, 'read it')) fail(`said: ${JSON.stringify(finals(frames))}`);
    const asked = JSON.stringify(model.about('[[say read it]]').at(-1).messages);
    if (!asked.includes(words) && !asked.includes('notes.txt')) fail('the model was told nothing of the file');
    return asked.includes(words) ? 'the model was given what the file says' : 'the model was told where the file is';
  },
  async 'media out'({ device, work, pull }) {
    const bytes = Buffer.from('an answer in a file\n'.repeat(20));
    writeFileSync(join(work, 'answer.txt'), bytes);
    const from = device.received.all.length;
    await turn(device, `[[say Here it is MEDIA:${work}/answer.txt]]`, { end: long });
    const given = await sees(device, from, ({ payload }) => payload.role !== 'user' && payload.media?.length > 0, 'no media', {
      within_ms: 15_000,
    });
    const [{ media_id, filename }] = given.payload.media;
    const got = await pull(device, media_id);
    if (!got.bytes.equals(bytes)) fail(`${got.bytes.length} of ${bytes.length} bytes came`);
    return `${filename}, ${bytes.length} bytes`;
  },
  /** A picture that a person attaches, as it is shown to the model. */
  async 'picture in'({ device, model, upload, pull }) {
    await upload(device, 'mu_seen', await picture(160, 90), { start: { kind: 'image', mime: 'image/png', filename: 'seen.png' } });
    const from = device.received.all.length;
    const frames = await turn(device, '[[say I have seen it]]', { more: { media_refs: ['mu_seen'] }, end: long });
    if (!includes(frames, 'I have seen it')) fail(`said: ${JSON.stringify(finals(frames))}`);
    const sent = ofTurn(device, from).find(({ payload }) => payload.role === 'user' && payload.media?.length > 0);
    const kept = await pull(device, sent.payload.media[0].media_id);
    const parts = model.about('[[say I have seen it]]').flatMap(({ messages }) => messages.flatMap(({ content }) => content));
    const url = parts.findLast((part) => part?.type === 'image_url')?.image_url.url ?? fail('the model was shown no picture');
    const shown = Buffer.from(url.split(',')[1], 'base64');
    const { width, height } = await sharp(shown).metadata();
    if (width !== 160 || height !== 90) fail(`the model was shown ${width} × ${height}`);
    return hashOf(shown) === hashOf(kept.bytes) ? 'shown to the model byte for byte' : 'shown to the model, in other bytes';
  },
  /** A picture that the agent made. */
  async 'picture out'({ device, work, pull }) {
    const bytes = await picture(120, 80);
    writeFileSync(join(work, 'made.png'), bytes);
    const from = device.received.all.length;
    await turn(device, `[[say Look at it MEDIA:${work}/made.png]]`, { end: long });
    const given = await sees(device, from, ({ payload }) => payload.role !== 'user' && payload.media?.length > 0, 'no picture', {
      within_ms: 15_000,
    });
    const [{ media_id, kind, mime, width, height }] = given.payload.media;
    if (kind !== 'image' || mime !== 'image/png') fail(`${kind} ${mime}`);
    const got = await sharp((await pull(device, media_id)).bytes).metadata();
    if (got.width !== 120 || got.height !== 80 || width !== 120 || height !== 80)
      fail(`${got.width} × ${got.height}, said ${width} × ${height}`);
    return `${mime}, ${width} × ${height}`;
  },
  async deletion({ device, model, hermes }) {
    const from = device.received.all.length;
    await turn(device, 'My colour is vermilion. [[say a fine colour]]');
    const { payload } = ofTurn(device, from).find(({ type, payload }) => type === 'message' && payload.text.includes('vermilion'));
    const deleted = await device.request('message.delete', { message_ids: [payload.message_id] }, { chat_id: 'android:default' });
    if (deleted.type !== 'message.deleted') fail(`message.delete: ${deleted.payload.message}`);
    const toldIn = async (words, limit) => {
      await turn(device, `[[say ${words}]]`, limit);
      return JSON.stringify(model.about(`[[say ${words}]]`)[0].messages);
    };
    // It is told of it in its own time.
    let n = 0;
    while ((await toldIn(`later ${n}`)).includes('vermilion')) if (++n === 10) fail('the model is told of it still');
    // What it remembers from now on is what it had written down.
    await hermes.kill();
    await hermes.start();
    const told = await toldIn('after a restart', { end: long });
    if (told.includes('vermilion')) fail('the model is told of it again after a restart');
    return `gone from what the model is told, also after a restart${told.includes(`later ${n}`) ? '' : ', which made it forget all'}`;
  },
  async cron({ device, home, cli, cron_to }) {
    if (cron_to === undefined) fail('there is nowhere to deliver to');
    mkdirSync(join(home, 'scripts'), { recursive: true });
    writeFileSync(join(home, 'scripts', 'iris-watch.sh'), 'echo the-disk-is-fine\n');
    const made = cli('cron', 'create', 'every 2h', '--name', 'watch', '--deliver', cron_to, '--no-agent', '--script', 'iris-watch.sh');
    const id = /\b[0-9a-f]{8,}\b/.exec(made)?.[0] ?? fail(`cron create said: ${made.slice(-200)}`);
    const from = device.received.all.length;
    cli('cron', 'run', id);
    const told = await sees(device, from, ({ payload }) => JSON.stringify(payload).includes('the-disk-is-fine'), 'nothing was delivered', {
      within_ms: 80_000,
    });
    cli('cron', 'remove', id);
    return `${told.type} as ${told.payload.role}`;
  },
  /** kill -9 of Hermes in the middle of an answer. */
  async 'restart of Hermes'({ device, model, hermes }) {
    const words = '[[count 300 50 h]]';
    const before = model.about(words).length;
    let text = '';
    const frames = await turn(device, words, {
      end: { within_ms: 150_000 },
      async during(from) {
        await until(() => model.about(words).length > before, 'the model was not asked');
        await sees(device, from, ({ type, payload }) => type === 'message.update' && payload.text.includes('h5'), '', { within_ms: 3_000 })
          .then((frame) => {
            text = frame.payload.text;
          })
          .catch(() => {});
        await hermes.kill();
        await hermes.start();
      },
    });
    if (frames.filter(({ type }) => type === 'agent.idle').length !== 1) fail(`ended more than once: ${short(frames)}`);
    const asked = model.about(words).length - before;
    const kept = said(frames).some(({ payload }) => (payload.final_text ?? payload.text ?? '').includes('h5'));
    if (text !== '' && !kept) fail('what had been said is gone');
    const after = await turn(device, '[[say here again]]', { end: { within_ms: 90_000 } });
    if (count(after, 'here again') !== 1) fail(`afterwards: ${JSON.stringify(finals(after))}`);
    const whole = includes(frames, 'h300')
      ? 'the answer came whole'
      : `the turn ended as broken off${text === '' ? '' : ', with what had been said'}`;
    return `${whole}; the model was asked ${asked} time${asked === 1 ? '' : 's'}; the next turn is answered`;
  },
  async 'restart of an edge'(scene) {
    return breaking(scene, 'e', async () => {
      await scene.cluster.edges[scene.agent_edge].kill();
      await scene.restartEdge();
    });
  },
  async 'restart of a session instance'(scene) {
    return breaking(scene, 'i', async () => {
      for (const session of scene.cluster.sessions.filter(({ alive }) => alive)) {
        const started = scene.cluster.startSession();
        await session.kill();
        await started;
      }
    });
  },
};

/** Something of the gateway goes and comes back in the middle of an answer, which must come whole, once. */
async function breaking({ device, model, may_end_early }, word, strike) {
  const words = `[[count 120 50 ${word}]]`;
  const before = model.about(words).length;
  const from = device.received.all.length;
  await device.send(words);
  await until(() => model.about(words).length > before, 'the model was not asked');
  await sees(device, from, ({ type, payload }) => type === 'message.update' && payload.text.includes(`${word}5`), '', {
    within_ms: 3_000,
  }).catch(() => {});
  await strike();
  await sees(
    device,
    from,
    ({ type, payload }) => (payload.final_text ?? (type === 'message' ? payload.text : '') ?? '').includes(`${word}120`),
    'no final',
    {
      within_ms: 120_000,
    },
  );
  await idle(device, from, { within_ms: 60_000 }, words);
  const frames = ofTurn(device, from);
  if (model.about(words).length - before !== 1) fail(`the model was asked ${model.about(words).length - before} times`);
  const finalIds = new Set(
    said(frames)
      .filter(({ payload }) => (payload.final_text ?? payload.text ?? '').includes(`${word}120`))
      .map(({ payload }) => payload.message_id),
  );
  if (finalIds.size !== 1) fail(`the final came as ${finalIds.size} messages`);
  const early = frames.some(({ payload }) => payload.interrupted === true);
  if (early && !may_end_early) fail('the turn was shown as interrupted');
  const after = await turn(device, `[[say still here ${word}]]`, { end: { within_ms: 60_000 } });
  if (count(after, `still here ${word}`) !== 1) fail(`afterwards: ${JSON.stringify(finals(after))}`);
  return early ? 'shown as interrupted, then the whole answer, once' : 'the answer came whole, once';
}
