/** Limits of the wire itself: the same for every tenant. Quotas, which tenants can change, are in `quotas.ts`. */
export const limits = {
  /** Bytes of one device text frame; larger closes with 1009. */
  frame_bytes: 256 * 1024,
  /** Bytes of the first frame: an unknown peer gets less. */
  hello_bytes: 64 * 1024,
  /** Bytes of one agent link text frame. */
  agent_frame_bytes: 1024 * 1024,
  /** UTF-8 bytes of one message's text. */
  text_bytes: 64 * 1024,
  /** Levels of nested objects and arrays. */
  json_depth: 32,
  /** Characters of a string request id. */
  request_id_length: 64,
  client_ref_length: 64,
  device_id_length: 128,
  device_name_length: 128,
  token_length: 512,
  push_token_length: 4096,
  push_key_length: 256,
  topic_length: 256,
  /** Code points of a channel or thread name. */
  name_code_points: 128,
  /** Code points of a name before it is trimmed. */
  name_raw_length: 4096,
  filename_bytes: 255,
  query_length: 1024,
  id_length: 128,
  ids_per_request: 1000,
  media_refs: 32,
  /** UTF-8 bytes of an answer to a picker. */
  picker_value_bytes: 4 * 1024,
  picker_choices: 200,
  history_page_max: 200,
  history_page_default: 50,
  snippet_code_points: 160,
  search_hits: 50,
  /** Milliseconds to the first frame. */
  hello_ms: 10_000,
  /** Malformed frames a minute before the connection is closed with 4400. */
  malformed_per_minute: 10,
  pull_chunk_bytes: 64 * 1024,
} as const;
