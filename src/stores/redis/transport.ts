/** Reply of Redis. */
export type Reply = string | number | null | readonly Reply[]

/** Sends commands to one server, to a cluster, to the master behind sentinels, or to an HTTP service. */
export interface RedisTransport {
  /** Hosts and ports for error messages, without credentials. */
  readonly address: string
  /** Sends a command to the server that holds `key`. Rejects after the time-out. */
  send(key: string, command: readonly string[]): Promise<Reply>
  /** Sends a command to every server that holds data. */
  sendToAll(command: readonly string[]): Promise<readonly Reply[]>
  /**
   * Listens to a channel; `onGap` is called when messages may have been missed. Resolves to false if the transport
   * cannot listen.
   */
  subscribe(channel: string, onMessage: (message: string) => void, onGap: () => void): Promise<boolean>
  /** Called after every new connection, whose server may be another one or have other settings. */
  onConnect: () => void
  close(): Promise<void>
}
