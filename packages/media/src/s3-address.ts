export interface S3Address {
  /** Of the server, without bucket. */
  readonly endpoint: string;
  readonly region: string;
  readonly bucket: string;
  readonly access: string;
  readonly secret: string;
}

/**
 * `http://access:secret@host:port/bucket?region=us-east-1`, `https` for TLS; `%xx` for what has a meaning in URLs. The region may be
 * left out.
 * @throws with what is missing
 */
export function s3Address(url: string): S3Address {
  const { protocol, host, pathname, searchParams, username, password } = new URL(url);
  const bucket = decodeURIComponent(pathname.slice(1).replace(/\/$/, ''));
  if (protocol !== 'http:' && protocol !== 'https:') throw new Error('an S3 address begins with http: or https:');
  if (bucket === '' || bucket.includes('/')) throw new Error('an S3 address names one bucket as its path');
  if (username === '' || password === '') throw new Error('an S3 address has an access key and a secret before the host');
  return {
    endpoint: `${protocol}//${host}`,
    region: searchParams.get('region') ?? 'us-east-1',
    bucket,
    access: decodeURIComponent(username),
    secret: decodeURIComponent(password),
  };
}

/**
 * Whether what is sent there needs no hash in its signature: nobody on the way can change it, since it is TLS, or there is no way (this
 * machine).
 */
export function bodyIsSafe(endpoint: string): boolean {
  const { protocol, hostname } = new URL(endpoint);
  return protocol === 'https:' || hostname === 'localhost' || hostname === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(hostname);
}
