/** Long reads of one state of a file, and work on its log. Each waits for the other kind that began earlier. */
export type LongReads = {
  readonly run: <T>(read: () => Promise<T>) => Promise<T>
  readonly exclude: <T>(work: () => Promise<T>) => Promise<T>
}

/** Work on a whole SQLite file, in a thread. */
export type FileMaintenance = {
  /** Removes deleted content from unused parts of the file and from its log. */
  readonly wipe: () => Promise<void>
  /** Moves the log into the database. */
  readonly truncateLog: () => Promise<void>
  /** Merges the trigram indexes of the graph, which removes what was deleted from them. */
  readonly mergeIndexes: () => Promise<void>
  /** Tells that something was erased, so that `wipeIfDue` wipes the file. */
  readonly noteErasure: () => void
  readonly longReads: LongReads
}
