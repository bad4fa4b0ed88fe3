import type { DatabaseSync as Database } from 'node:sqlite'

// An import of a module that an old Node does not have fails before its version can be checked.
export const { backup, DatabaseSync } = process.getBuiltinModule('node:sqlite')
export type DatabaseSync = Database
