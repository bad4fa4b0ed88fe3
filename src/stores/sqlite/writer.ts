import { parentPort, workerData } from 'node:worker_threads'
import { BatchWriter, type WriteTask } from './batchWriter.ts'
import type { GuardedFile } from './fileGuard.ts'

/** Worker thread that writes one database, so that waiting for the disk does not block the main thread. */
const writer = new BatchWriter(workerData as GuardedFile)

parentPort?.on('message', (message: readonly (WriteTask | string)[] | string) => {
  if (message === 'close') {
    writer.close()
    parentPort?.close()
  } else parentPort?.postMessage(JSON.stringify(writer.run(decodeTasks(message))))
})

/** Decodes a batch as `encodeBatch` of the write queue encodes it. */
function decodeTasks(message: readonly (WriteTask | string)[] | string): readonly WriteTask[] {
  if (typeof message === 'string') return JSON.parse(message) as readonly WriteTask[]
  return message.map((task) => (typeof task === 'string' ? (JSON.parse(task) as WriteTask) : task))
}
