import { type AgentId, makeToken, RequestError, type TenantId, type TokenId, unsupported } from '@iris/protocol';
import { type Clock, type Gate, OutOfReach, type Random, randomId, type Seal } from '@iris/runtime';
import { type AgentBackendRow, type Store, tokenHash } from '@iris/store';
import type { Static } from 'typebox';
import { Compile } from 'typebox/compile';
import { BackendChange } from './agent-schemas.js';

/** What agents answer with when the gateway's own runner stands behind them. */
export interface Backends {
  /** @throws RequestError `unsupported` for an address that may not be asked, or where nothing can be sealed */
  check(change: Static<typeof BackendChange>): void;
  /**
   * Keep it, with the token by which the runner attaches; a backend that stood keeps its token, and its key as long as that goes to the
   * same place. `revoked` is the token of one that could not be opened any more. Undefined when there is no such agent.
   */
  set(
    tenant_id: TenantId,
    agent_id: AgentId,
    change: Static<typeof BackendChange>,
  ): Promise<{ readonly revoked: { readonly token_id: TokenId } | undefined } | undefined>;
  /** Take it away, and revoke the runner's token. Undefined when there was none. */
  remove(tenant_id: TenantId, agent_id: AgentId): Promise<{ token_id: TokenId } | undefined>;
  /**
   * Those that came with an archive, which holds no secrets: what had no key serves again, as far as this gateway lets it. Returns the agents
   * of the others, which wait to be set with their key.
   */
  restore(tenant_id: TenantId): Promise<AgentId[]>;
}

const wellFormed = Compile(BackendChange);
/** It came with an archive, and serves nobody. */
const isBare = ({ sealed }: Pick<AgentBackendRow, 'sealed'>): boolean => sealed === '';

interface Secrets {
  readonly token: string;
  readonly key?: string;
}

/** What a sealed text belongs to: in another row it opens nothing. */
export const sealedFor = ({ tenant_id, agent_id }: Pick<AgentBackendRow, 'tenant_id' | 'agent_id'>): string => `${tenant_id}\n${agent_id}`;

/** @param deps.seal absent when the configuration has no secret for it: then there are no backends */
export function createBackends(deps: {
  store: Store;
  clock: Clock;
  random: Random;
  secret: () => string;
  seal: Seal | undefined;
  gate: Gate;
}): Backends {
  const { store, clock, random, gate } = deps;
  const sealOf = (): Seal => {
    if (deps.seal === undefined) throw unsupported('backend: this gateway has no sealing_secret, so it keeps none');
    return deps.seal;
  };
  const find = async (tenant_id: TenantId, agent_id: AgentId) =>
    (await store.agentBackends.list(tenant_id)).find((row) => row.agent_id === agent_id);
  const opened = (row: AgentBackendRow): Secrets | undefined => {
    const text = sealOf().open(row.sealed, sealedFor(row));
    return text === undefined ? undefined : (JSON.parse(text) as Secrets);
  };
  const stillOpens = async (tenant_id: TenantId, token_id: TokenId): Promise<boolean> => {
    const token = (await store.tokens.list(tenant_id)).find((one) => one.token_id === token_id);
    return token !== undefined && token.revoked_at === null && token.expires_at === null;
  };
  const newToken = async (tenant_id: TenantId, agent_id: AgentId): Promise<{ token_id: TokenId; token: string }> => {
    const token_id = `tk_${randomId(random, 12)}` as TokenId;
    const token = makeToken('agent', tenant_id, deps.secret());
    const row = { tenant_id, token_id, kind: 'agent', hash: tokenHash(token), device_id: null, agent_id, label: 'runner' } as const;
    await store.tokens.create({ ...row, created_at: clock.now() });
    return { token_id, token };
  };

  const check: Backends['check'] = (change) => {
    sealOf();
    if (change.kind === 'demo') return;
    if (!URL.canParse(change.url)) throw unsupported('backend.url: no address');
    try {
      gate.admit(new URL(change.url));
    } catch (error) {
      if (error instanceof OutOfReach) throw unsupported(`backend.url: ${error.message}`);
      throw error;
    }
  };
  const backends: Backends = {
    check,
    async set(tenant_id, agent_id, change) {
      check(change);
      const standing = await find(tenant_id, agent_id);
      const known = standing === undefined ? undefined : opened(standing);
      const kept = standing !== undefined && known !== undefined && (await stillOpens(tenant_id, standing.token_id));
      const { token_id, token } = kept ? { token_id: standing.token_id, token: known.token } : await newToken(tenant_id, agent_id);
      const { kind, key: given, ...settings } = { key: undefined, ...change };
      // Whoever may name another address need not know the key: it does not go there.
      const key = given === undefined && standing !== undefined && samePlace(standing, change) ? known?.key : (given ?? undefined);
      const secrets: Secrets = { token, ...(key === undefined ? {} : { key }) };
      const row: AgentBackendRow = {
        tenant_id,
        agent_id,
        kind,
        settings,
        token_id,
        sealed: sealOf().seal(JSON.stringify(secrets), sealedFor({ tenant_id, agent_id })),
        has_key: key !== undefined,
        changed_at: clock.now(),
      };
      if (!(await store.agentBackends.set(row))) {
        await store.tokens.revoke(tenant_id, token_id, clock.now());
        return undefined;
      }
      if (standing === undefined || kept || isBare(standing)) return { revoked: undefined };
      // It is in no row any more, so nobody could revoke it later; and whoever has what sealed it may know it.
      await store.tokens.revoke(tenant_id, standing.token_id, clock.now());
      return { revoked: { token_id: standing.token_id } };
    },
    async remove(tenant_id, agent_id) {
      const standing = await find(tenant_id, agent_id);
      if (standing === undefined) return undefined;
      if (!isBare(standing)) await store.tokens.revoke(tenant_id, standing.token_id, clock.now());
      await store.agentBackends.remove(tenant_id, agent_id);
      return isBare(standing) ? undefined : { token_id: standing.token_id };
    },
    async restore(tenant_id) {
      const waiting: AgentId[] = [];
      for (const row of (await store.agentBackends.list(tenant_id)).filter(isBare)) {
        const given = { kind: row.kind, ...row.settings };
        try {
          if (row.has_key) waiting.push(row.agent_id);
          // An archive may be anybody's.
          else if (wellFormed.Check(given)) await backends.set(tenant_id, row.agent_id, given);
          else await store.agentBackends.remove(tenant_id, row.agent_id);
        } catch (error) {
          if (!(error instanceof RequestError)) throw error;
          waiting.push(row.agent_id);
        }
      }
      return waiting;
    },
  };
  return backends;
}

const originOf = (url: unknown): string | undefined => (typeof url === 'string' && URL.canParse(url) ? new URL(url).origin : undefined);
const samePlace = (row: AgentBackendRow, change: Static<typeof BackendChange>): boolean =>
  row.kind === change.kind && change.kind !== 'demo' && originOf(row.settings.url) === originOf(change.url);

/** As it may be seen. */
export const shownBackend = (row: AgentBackendRow | undefined) =>
  row === undefined ? null : { kind: row.kind, ...row.settings, has_key: row.has_key && !isBare(row), waits: isBare(row) };
