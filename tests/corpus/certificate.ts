import { generateKeyPairSync, sign } from 'node:crypto';

const der = (tag: number, ...parts: readonly Uint8Array[]): Buffer => {
  const body = Buffer.concat(parts);
  const { length } = body;
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255];
  return Buffer.concat([Buffer.from([tag, ...size]), body]);
};
const [sequence, set, bits, octets, time, text] = [0x30, 0x31, 0x03, 0x04, 0x17, 0x0c];
const hex = (digits: string) => Buffer.from(digits, 'hex');
const ecdsaWithSha256 = der(sequence, hex('06082a8648ce3d040302'));
const nameOf = (name: string) => der(sequence, der(set, der(sequence, hex('0603550403'), der(text, Buffer.from(name)))));
const pem = (label: string, body: Buffer) =>
  `-----BEGIN ${label}-----\n${body.toString('base64').replace(/.{64}/g, '$&\n')}\n-----END ${label}-----\n`;
const utc = (at: Date) => der(time, Buffer.from(`${at.toISOString().replace(/[-:T]/g, '').slice(2, 14)}Z`));

/** A certificate, as PEM, that nobody has signed but its own key, for an address of this machine. Good for a day. */
export function certificateFor(address: readonly [number, number, number, number]): { readonly cert: string; readonly key: string } {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const now = Date.now();
  const day_ms = 86_400_000;
  const alternative = der(sequence, hex('0603551d11'), der(octets, der(sequence, der(0x87, Uint8Array.from(address)))));
  const authority = der(sequence, hex('0603551d13'), hex('0101ff'), der(octets, der(sequence, hex('0101ff'))));
  const signed = der(
    sequence,
    hex('a003020102'),
    der(0x02, Uint8Array.of(1)),
    ecdsaWithSha256,
    nameOf('a test'),
    der(sequence, utc(new Date(now - day_ms)), utc(new Date(now + day_ms))),
    nameOf('a test'),
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, der(sequence, authority, alternative)),
  );
  const certificate = der(sequence, signed, ecdsaWithSha256, der(bits, Uint8Array.of(0), sign('sha256', signed, privateKey)));
  return { cert: pem('CERTIFICATE', certificate), key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string };
}
