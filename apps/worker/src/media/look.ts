import sharp from 'sharp';
import { rgbaToThumbHash } from 'thumbhash';

export interface LookLimits {
  /** Of all frames together. */
  readonly pixels: number;
  readonly frames: number;
  /** Of a side of the preview. */
  readonly thumb_pixels: number;
}

export interface Look {
  /** As it is shown: turned the right way up. */
  readonly width: number;
  readonly height: number;
  readonly frames: number;
  /** Base64. */
  readonly thumbhash: string;
  readonly thumb: { readonly bytes: Uint8Array; readonly width: number; readonly height: number };
}

/** What the type of a file is called there. Nothing else is opened, whatever it would take it for. */
const formats: ReadonlyMap<string, string> = new Map([
  ['image/png', 'png'],
  ['image/jpeg', 'jpeg'],
  ['image/gif', 'gif'],
  ['image/webp', 'webp'],
  ['image/avif', 'heif'],
]);
export const isLookable = (mime: string): boolean => formats.has(mime);

sharp.cache(false);
sharp.concurrency(1);

/** Decodes a picture. @throws when it is none of its type, not whole, or more than the limits allow */
export async function look(bytes: Uint8Array, mime: string, limits: LookLimits): Promise<Look> {
  const options = { limitInputPixels: limits.pixels, failOn: 'error', sequentialRead: true } as const;
  const { format, width, height, pages = 1, autoOrient } = await sharp(bytes, options).metadata();
  if (format !== formats.get(mime)) throw new Error(`it is ${format}, not ${mime}`);
  if (pages > limits.frames) throw new Error(`it has ${pages} frames`);
  if (width * height * pages > limits.pixels) throw new Error(`it has ${width} × ${height} × ${pages} pixels`);
  const small = await sharp(bytes, options)
    .rotate()
    .resize({ width: limits.thumb_pixels, height: limits.thumb_pixels, fit: 'inside', withoutEnlargement: true })
    .webp({ quality: 75 })
    .timeout({ seconds: 20 })
    .toBuffer({ resolveWithObject: true });
  const tiny = await sharp(small.data)
    .resize({ width: 100, height: 100, fit: 'inside', withoutEnlargement: true })
    .ensureAlpha()
    .raw()
    .toBuffer({ resolveWithObject: true });
  return {
    width: autoOrient.width,
    height: autoOrient.height,
    frames: pages,
    thumbhash: Buffer.from(rgbaToThumbHash(tiny.info.width, tiny.info.height, tiny.data)).toString('base64'),
    thumb: { bytes: small.data, width: small.info.width, height: small.info.height },
  };
}
