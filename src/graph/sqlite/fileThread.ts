import type { FileMaintenance, LongReads } from '../../domain/fileMaintenance.ts'
import { type GuardedFile, releaseFile } from '../../stores/sqlite/fileGuard.ts'
import { createFileTasks } from '../../stores/sqlite/wipe/fileTasks.ts'
import { WipeRunner } from '../../stores/sqlite/wipe/wipeRunner.ts'
import { WriteQueue } from '../../stores/sqlite/writeQueue.ts'

/** Work on a file that its thread does. */
export type ThreadWork = Pick<FileMaintenance, 'wipe' | 'truncateLog' | 'mergeIndexes'>

/**
 * Thread for a file without an open store. It is kept, because the memory that a thread frees is not used by the next
 * one.
 */
export class FileThread implements ThreadWork {
  readonly truncateLog: ThreadWork['truncateLog']
  readonly mergeIndexes: ThreadWork['mergeIndexes']
  private readonly queue: WriteQueue
  private readonly wipeRunner: WipeRunner

  constructor(file: GuardedFile, longReads: LongReads) {
    this.queue = new WriteQueue(file, (error) => error)
    this.wipeRunner = new WipeRunner(this.queue, longReads)
    const { truncateLog, mergeIndexes } = createFileTasks(this.queue)
    this.truncateLog = truncateLog
    this.mergeIndexes = mergeIndexes
  }

  wipe(): Promise<void> {
    return this.wipeRunner.wipe()
  }

  /** Resolves when all wipes that were asked for have ended. */
  drain(): Promise<void> {
    return this.wipeRunner.drain()
  }

  async close(): Promise<void> {
    await this.drain()
    await this.queue.close()
  }
}

/** Releases a file after the connections of its thread are closed: its descriptor holds the locks of all of them. */
export async function releaseFileAfter(thread: FileThread | undefined, file: GuardedFile | undefined): Promise<void> {
  await thread?.close()
  try {
    if (file !== undefined) releaseFile(file)
  } catch {
    // Nothing can be done about a descriptor that cannot be closed.
  }
}
