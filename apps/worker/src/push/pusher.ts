import type { Jobs } from '@iris/jobs';
import type { Outbox } from '@iris/outbox';
import type { TenantId } from '@iris/protocol';
import type { Clock, Log, Meter, Random } from '@iris/runtime';
import type { PushKind, Store } from '@iris/store';
import { fcmAccount, fcmSender } from '../senders/fcm.js';
import { type Http, nodeHttp } from '../senders/http.js';
import { ntfySender } from '../senders/ntfy.js';
import type { Sender } from '../senders/sender.js';
import { webPushSender } from '../senders/webpush.js';
import { check } from './check.js';
import type { PushConfig } from './config.js';
import { createDispatch } from './dispatch.js';
import { sweep } from './sweep.js';
import { withdraw } from './withdraw.js';

/** Pushes, as the jobs ask for them. */
export interface Pusher {
  check(tenant_id: TenantId): Promise<void>;
  withdraw(tenant_id: TenantId): Promise<void>;
  sweep(): Promise<void>;
  /** Ends once what is under way is recorded. */
  stop(): Promise<void>;
}

/** Edges say at once whom they hold when they reach the outbox again; some reach it later than others. */
const settle_ms = 4_000;
const prune_ms = 10 * 60_000;

/** @throws Error when a provider that is named has no credentials */
export function createPusher(
  deps: { store: Store; outbox: Outbox; jobs: Jobs; clock: Clock; random: Random; log: Log; meter: Meter; http?: Http },
  config: PushConfig,
): Pusher {
  const { store, outbox, clock } = deps;
  const senders = sendersOf(config, { http: deps.http ?? nodeHttp(clock), clock });
  const dispatch = createDispatch({ ...deps, senders }, config);
  let settled_at = 0;
  let lost = false;
  let pruned_at = clock.now();
  const endListening = outbox.onReconnected(() => {
    settled_at = clock.now() + settle_ms;
    lost = true;
  });
  const bereaved = () => {
    const was = lost;
    lost = false;
    return was;
  };
  const parts = { ...deps, senders, dispatch, settled_at: () => settled_at, withdrawing: new Set<TenantId>(), bereaved };
  return {
    check: (tenant_id) => check(parts, config, tenant_id),
    withdraw: (tenant_id) => withdraw(parts, config, tenant_id),
    async sweep() {
      await sweep(parts, config);
      if (clock.now() < pruned_at + prune_ms) return;
      pruned_at = clock.now();
      await store.pushFrames.prune(clock.now() - config.push_keep_ms);
    },
    async stop() {
      endListening();
      await dispatch.stop();
    },
  };
}

function sendersOf(config: PushConfig, { http, clock }: { http: Http; clock: Clock }): ReadonlyMap<PushKind, Sender> {
  const { push_timeout_ms: timeout_ms } = config;
  const common = { http, clock, timeout_ms };
  const needed = <N extends keyof PushConfig>(name: N): NonNullable<PushConfig[N]> => {
    const value = config[name];
    if (value === undefined) throw new Error(`${name}: missing, though push_providers names who needs it`);
    return value;
  };
  const make: Readonly<Record<PushKind, () => Sender>> = {
    fcm: () => fcmSender({ ...common, url: config.push_fcm_url, account: fcmAccount(needed('push_fcm_account')) }),
    webpush: () =>
      webPushSender({
        ...common,
        hosts: config.push_webpush_hosts,
        vapid: {
          public_key: needed('push_vapid_public_key'),
          private_key: needed('push_vapid_private_key'),
          subject: needed('push_vapid_subject'),
        },
      }),
    ntfy: () => ntfySender({ ...common, url: config.push_ntfy_url, access: config.push_ntfy_token }),
  };
  return new Map(config.push_providers.map((kind) => [kind as PushKind, make[kind as PushKind]()]));
}
