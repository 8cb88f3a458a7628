/** A row as JSON, columns by their names. */
export type ArchiveRow = Readonly<Record<string, unknown>>;

/** Whole tenants, out of the store and into it. */
export interface Archive {
  /**
   * Everything of the tenant as of one instant, table by table, in an order in which it can be written again. Left out: what opens the tenant
   * (tokens, pairing codes, secrets of backends), what is under way (frames for agents, pushes and their addresses), and the audit.
   */
  dump(tenant_id: string): AsyncIterable<{ readonly table: string; readonly rows: readonly ArchiveRow[] }>;
  /**
   * Rows of a dump, as the tenant named. What stands already stays. Turns that had not ended are interrupted, links of agents are gone, backends have no secrets, and
   * what this version does not know is passed over.
   * @throws when the table is none of a dump, or the rows do not fit it
   */
  load(tenant_id: string, table: string, rows: readonly ArchiveRow[]): Promise<number>;
  /** Take away what `tenants.create` made besides the tenant, since the archive brings its own. */
  clear(tenant_id: string): Promise<void>;
  /** Rows of each table that has some, the tenant's own one too. */
  count(tenant_id: string): Promise<Map<string, number>>;
  close(): Promise<void>;
}
