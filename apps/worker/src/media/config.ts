import { Type } from 'typebox';

const whole = (value: number, description: string) =>
  Type.Integer({ default: value, minimum: 1, maximum: Number.MAX_SAFE_INTEGER, description });

/** What a worker may spend on one file, and how long files stay that nothing names. */
export const MediaConfig = Type.Object({
  media_at_once: whole(2, 'files that are looked at at once'),
  media_pixels: whole(50_000_000, 'pixels of a picture, all its frames together; one with more is a file like any other'),
  media_frames: whole(500, 'frames of a picture'),
  media_look_ms: whole(15_000, 'milliseconds to decode a picture'),
  media_memory_bytes: whole(768 * 1024 * 1024, 'bytes that decoding may take'),
  thumb_pixels: whole(512, 'pixels of the longer side of a preview'),
  media_image_bytes: whole(128 * 1024 * 1024, 'bytes of a picture; a larger one cannot be cleaned of what it tells, and is refused'),
  media_film_bytes: whole(1024 * 1024 * 1024, 'bytes of a film that is copied to the disk for a preview'),
  media_clean_ms: whole(60_000, 'milliseconds between looks for files that nothing names'),
  media_loose_ms: whole(24 * 3_600_000, 'milliseconds that an upload may take, and may wait for its message'),
  media_offered_ms: whole(14 * 24 * 3_600_000, 'milliseconds that a file is kept which an agent offered outside of a message'),
});
