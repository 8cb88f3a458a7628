import { spawn } from 'node:child_process';
import { type FileHandle, open, unlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Clock, type Log, randomId, systemRandom } from '@iris/runtime';

/** What there is to see in a film. */
export interface Scene {
  /** As it is shown: turned the right way up. */
  readonly width?: number;
  readonly height?: number;
  /** Seconds. */
  readonly duration?: number;
  /** A picture near its beginning, as PNG. */
  readonly poster?: Uint8Array;
}

/** Looks into films and sounds with ffmpeg, in processes of their own. */
export interface Cinema {
  /** Undefined when it cannot be opened within the limits. */
  look(bytes: AsyncIterable<Uint8Array>, mime: string): Promise<Scene | undefined>;
}

export interface CinemaLimits {
  /** Of each of the two processes. */
  readonly time_ms: number;
  readonly memory_bytes: number;
  /** Of one picture. */
  readonly pixels: number;
  /** Of the longer side of the poster. */
  readonly poster_pixels: number;
}

/** What a type is opened as, and nothing else: lists of other files, in whatever a file may look like, are never followed. */
const demuxers: ReadonlyMap<string, string> = new Map([
  ['video/mp4', 'mov'],
  ['video/quicktime', 'mov'],
  ['video/webm', 'matroska'],
  ['audio/mp4', 'mov'],
  ['audio/mpeg', 'mp3'],
  ['audio/ogg', 'ogg'],
  ['audio/wav', 'wav'],
  ['audio/flac', 'flac'],
]);
/** A film, or a sound, of which there is nothing to see but how long it is. */
export const isPlayed = (mime: string): boolean => demuxers.has(mime);

/** Where such programs are; of the environment they get no more. */
const path = '/usr/local/bin:/usr/bin:/bin:/opt/homebrew/bin';
/** The file as those programs are given it: it has no name. */
const film = '/dev/fd/3';
const output_bytes = 64 * 1024 * 1024;

interface Ran {
  readonly code: number | null;
  readonly output: Buffer;
}

/** A shell sets the limits and becomes the program: nothing of the arguments is read by it. What it opens as `film` is the file. */
function run(clock: Clock, program: string, args: readonly string[], limits: CinemaLimits, file?: FileHandle): Promise<Ran> {
  return new Promise((resolve) => {
    const seconds = Math.ceil(limits.time_ms / 1_000);
    const shell = `ulimit -t ${seconds}; ulimit -v ${Math.ceil(limits.memory_bytes / 1_024)} 2>/dev/null; ulimit -c 0; exec "$@"`;
    const child = spawn('/bin/sh', ['-c', shell, 'sh', program, ...args], {
      env: { PATH: path },
      stdio: ['ignore', 'pipe', 'ignore', file?.fd ?? 'ignore'],
    });
    const pieces: Buffer[] = [];
    let size = 0;
    child.stdout!.on('data', (piece: Buffer) => {
      size += piece.length;
      if (size > output_bytes) child.kill('SIGKILL');
      else pieces.push(piece);
    });
    const overdue = clock.after(limits.time_ms, () => child.kill('SIGKILL'));
    const end = (code: number | null) => {
      overdue.cancel();
      resolve({ code, output: Buffer.concat(pieces) });
    };
    child.on('error', () => end(null));
    child.on('close', end);
  });
}

/** @returns undefined, and a line in the log, when ffmpeg and ffprobe are not both there */
export async function findCinema(deps: { clock: Clock; log: Log; limits: CinemaLimits; folder?: string }): Promise<Cinema | undefined> {
  const { clock, log, limits, folder = tmpdir() } = deps;
  for (const program of ['ffprobe', 'ffmpeg'])
    if ((await run(clock, program, ['-version'], limits)).code !== 0) {
      log.warn('media.no_ffmpeg', { program, note: 'ffmpeg and ffprobe are not here: films get no preview' });
      return undefined;
    }
  return {
    async look(bytes, mime) {
      const demuxer = demuxers.get(mime);
      if (demuxer === undefined) return undefined;
      const name = join(folder, `iris-film-${randomId(systemRandom)}`);
      // A preview is welcome, and no more: where there is no room for the film, the file is known without one.
      const noRoom = (error: unknown) => {
        log.warn('media.no_preview', { mime, error });
        return undefined;
      };
      const file = await open(name, 'wx+', 0o600).catch(noRoom);
      if (file === undefined) return undefined;
      try {
        // Whatever becomes of this process, nothing is left.
        await unlink(name);
        for await (const piece of bytes) if ((await file.writeFile(piece).then(() => true, noRoom)) === undefined) return undefined;
        const seen = await lookAt((program, args) => run(clock, program, args, limits, file), demuxer, limits, mime.startsWith('audio/'));
        if (seen === undefined) log.info('media.not_decoded', { mime, why: 'ffprobe does not open it' });
        return seen;
      } finally {
        await file.close();
      }
    },
  };
}

type Run = (program: string, args: readonly string[]) => Promise<Ran>;

async function lookAt(start: Run, demuxer: string, limits: CinemaLimits, heard: boolean): Promise<Scene | undefined> {
  const open = ['-protocol_whitelist', 'file,pipe', '-f', demuxer, '-max_pixels', String(limits.pixels)];
  const entries = 'format=duration:stream=width,height:stream_side_data=rotation';
  const probing = ['-v', 'error', ...open, '-select_streams', 'v:0', '-show_entries', entries, '-of', 'json', film];
  const { code, output } = await start('ffprobe', probing);
  if (code !== 0) return undefined;
  const { width, height, duration, rotation } = facts(output);
  // The picture of a sound is that of its cover.
  if (heard) return duration === undefined ? {} : { duration };
  const lying = Math.abs(rotation) % 180 === 90;
  const size = width === undefined || height === undefined ? {} : lying ? { width: height, height: width } : { width, height };
  const known = { ...size, ...(duration === undefined ? {} : { duration }) };
  if (width === undefined) return known;
  const side = limits.poster_pixels;
  const scaled = `scale='min(${side},iw)':'min(${side},ih)':force_original_aspect_ratio=decrease`;
  // Many begin in black.
  const starts = duration === undefined || duration < 0.5 ? [0] : [Math.min(1, duration / 3), 0];
  for (const from of starts) {
    const input = ['-nostdin', '-v', 'error', '-threads', '1', ...open, '-ss', from.toFixed(3), '-i', film];
    const made = ['-map', '0:v:0', '-frames:v', '1', '-vf', scaled, '-an', '-sn', '-dn', '-c:v', 'png', '-f', 'image2pipe', 'pipe:1'];
    const shot = await start('ffmpeg', [...input, ...made]);
    if (shot.code === 0 && shot.output.length > 0) return { ...known, poster: shot.output };
  }
  return known;
}

/** What ffprobe says, as far as it is of the kind that it should be. */
function facts(output: Buffer): { width?: number; height?: number; duration?: number; rotation: number } {
  const said = JSON.parse(output.toString()) as {
    streams?: { width?: unknown; height?: unknown; side_data_list?: { rotation?: unknown }[] }[];
    format?: { duration?: unknown };
  };
  const [stream] = said.streams ?? [];
  const side = (value: unknown) => (Number.isSafeInteger(value) && (value as number) > 0 ? (value as number) : undefined);
  const [width, height] = [side(stream?.width), side(stream?.height)];
  const duration = Number(said.format?.duration);
  const turned = (stream?.side_data_list ?? []).map(({ rotation }) => Number(rotation)).find((one) => Number.isFinite(one));
  return {
    ...(width === undefined || height === undefined ? {} : { width, height }),
    ...(Number.isFinite(duration) && duration > 0 ? { duration: Math.round(duration * 1_000) / 1_000 } : {}),
    rotation: turned ?? 0,
  };
}
