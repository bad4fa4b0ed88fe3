import { parentPort, workerData } from 'node:worker_threads'
import { Group, type Task } from './group.ts'

/** A thread that writes one database, so that waiting for the disk holds up nobody else. */
const group = new Group((workerData as { path: string }).path)

parentPort?.on('message', (sent: readonly (Task | string)[] | 'close') => {
  if (sent === 'close') {
    group.close()
    parentPort?.close()
    return
  }
  const tasks = sent.map((task) => (typeof task === 'string' ? (JSON.parse(task) as Task) : task))
  parentPort?.postMessage(JSON.stringify(group.run(tasks)))
})
