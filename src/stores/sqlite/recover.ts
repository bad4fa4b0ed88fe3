import { closeSync, copyFileSync, existsSync, openSync, renameSync, rmSync, truncateSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import { recoveredFile, syncFile } from './connect.ts'
import type { FileGuard } from './fileGuard.ts'
import { backup, type DatabaseSync } from './nodeSqlite.ts'

/** Pages copied between two turns of the event loop. */
const pagesPerStep = 500

/** Copies the database of an open connection beside its path, where it is missing; returns the name of the copy. */
export async function recoverFile(database: DatabaseSync, path: string): Promise<string> {
  const target = freeName((number) => recoveredFile(path, number))
  const unfinished = `${target}.unfinished`
  rmSync(unfinished, { force: true })
  closeSync(openSync(unfinished, 'wx', 0o600))
  try {
    await backup(database, unfinished, { rate: pagesPerStep })
    syncFile(unfinished)
    renameSync(unfinished, target)
    return target
  } catch (error) {
    rmSync(unfinished, { force: true })
    throw error
  }
}

const checksBeforeSettingAside = 3
const checkIntervalMs = 20

/** True if the database is overwritten for good, not in the middle of a checkpoint of another process. */
export async function isOverwritten(guard: FileGuard): Promise<boolean> {
  for (let checks = 0; checks < checksBeforeSettingAside; checks++) {
    if (!guard.isOverwritten()) return false
    await wait(checkIntervalMs)
  }
  return true
}

/** Copies the log of an overwritten database and empties it, so that it is not applied to the new content. */
export function setLogAside(path: string, onWarning: (warning: string) => void): void {
  const copy = freeName((number) => `${path}-wal.recovered-${number}`)
  copyFileSync(`${path}-wal`, copy)
  truncateSync(`${path}-wal`)
  onWarning(`${path} was overwritten while it was open. The log of its previous content was moved to ${copy}.`)
}

function freeName(format: (number: number) => string): string {
  let number = 1
  while (existsSync(format(number))) number++
  return format(number)
}
