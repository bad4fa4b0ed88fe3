import { parentPort, workerData } from 'node:worker_threads'
import { Group, type Task } from './group.ts'

/** A thread that writes one database, so that waiting for the disk holds up nobody else. */
const group = new Group((workerData as { path: string }).path)

parentPort?.on('message', (sent: readonly (Task | string)[] | string) => {
  if (sent === 'close') {
    group.close()
    parentPort?.close()
  } else parentPort?.postMessage(JSON.stringify(group.run(tasksOf(sent))))
})

function tasksOf(sent: readonly (Task | string)[] | string): readonly Task[] {
  if (typeof sent === 'string') return JSON.parse(sent) as readonly Task[]
  return sent.map((task) => (typeof task === 'string' ? (JSON.parse(task) as Task) : task))
}
