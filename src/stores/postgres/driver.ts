import type { SqlSession } from '../../domain/ports.ts'

export type SqlValue = null | boolean | number | string | Uint8Array
/** Row of a result; `bigint` columns are numbers, `json` columns text. */
export type SqlRow = readonly unknown[]

/** One connection, used by one caller at a time. `query` and `run` take one round trip each. */
export interface Connection extends SqlSession {
  /** Returns the connection; a broken one is closed. */
  release(isBroken: boolean): void
}

export type NotificationListener = {
  onMessage(payload: string): void
  /** Called when messages may have been missed: after each reconnection. */
  onGap(): void
}

/** Connections to one database. */
export interface Driver {
  /** Address of the database for messages, without its password. */
  readonly name: string
  connect(): Promise<Connection>
  /** Subscribes to a channel until the driver is closed; resolves once the first subscription is active. */
  listen(channel: string, listener: NotificationListener): Promise<void>
  close(): Promise<void>
}

/** Object id of a type. */
export const typeIds = { bigint: 20, bytea: 17, json: 114, jsonb: 3802 } as const
