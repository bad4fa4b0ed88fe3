/** Entry point of a worker: posts the regular expressions that the files in `workerData` create with `RegExp`. */
import { fileURLToPath } from 'node:url'
import { parentPort, workerData } from 'node:worker_threads'
import { root } from '../source.ts'
import type { Pattern } from './collect.ts'

const recorded = new Map<string, Pattern>()

/** Records a pattern with the position of the innermost call in the sources. */
function record({ source, flags }: RegExp): void {
  const { prepareStackTrace } = Error
  const holder: { stack?: readonly NodeJS.CallSite[] } = {}
  Error.prepareStackTrace = (_, sites) => sites
  Error.captureStackTrace(holder, record)
  // The stack is formatted when it is read.
  const sites = holder.stack ?? []
  Error.prepareStackTrace = prepareStackTrace
  for (const site of sites) {
    const url = site.getFileName()
    if (url?.startsWith('file:') !== true) continue
    const path = fileURLToPath(url).replaceAll('\\', '/')
    if (!path.startsWith(root) || !/^(?:inspector\/)?src\//.test(path.slice(root.length))) continue
    const at = `${path.slice(root.length)}:${site.getLineNumber()}`
    recorded.set(`${at} /${source}/${flags}`, { at, source, flags })
    return
  }
}

globalThis.RegExp = new Proxy(RegExp, {
  construct(target, args, newTarget) {
    const pattern = Reflect.construct(target, args, newTarget) as RegExp
    record(pattern)
    return pattern
  },
  apply(target, receiver, args) {
    const pattern = Reflect.apply(target, receiver, args) as RegExp
    record(pattern)
    return pattern
  },
})

for (const path of workerData as readonly string[]) await import(`${root}${path}`)
const { createLazily } = await import('./createLazily.ts')
createLazily()
parentPort?.postMessage([...recorded.values()])
