import { getHeapSpaceStatistics } from 'node:v8'
import { openMemory } from '../../../src/index.ts'
import { serve } from '../../../src/server/serve.ts'
import { ramStore } from '../../../src/stores/ram.ts'
import { zstd } from '../../../src/stores/zstd.ts'
import type { Options, Order, Taken, Told } from './stand.ts'

/** Serves in a process of its own, with `--expose-gc`, so that what it takes is the server's alone: see stand.ts. */
const { upstream, profile, store, awake } = JSON.parse(process.argv[2] ?? '{}') as Required<Options>
const faults: string[] = []
const sessions = ramStore({ ...(zstd === undefined ? {} : { pack: zstd }), awake })
const memory = await openMemory({ profile, store, ...(profile === 'support' ? { sessions } : {}) })
const serving = await serve({
  memory,
  port: 0,
  upstream,
  persistence: { tries: 1 },
  onFault: (_, trace) => faults.push(trace),
})
const tell = (told: Told): boolean | undefined => process.send?.(told)

/** What the process holds once it has let go of what it does not need. Compiled code is not counted: it comes and goes by itself. */
function taken(): Taken {
  globalThis.gc?.()
  globalThis.gc?.()
  const { arrayBuffers, rss } = process.memoryUsage()
  const spaces = getHeapSpaceStatistics().filter(({ space_name: name }) => !/code|trusted|read_only/.test(name))
  const heap = spaces.reduce((sum, { space_used_size: used }) => sum + used, 0)
  const sockets = process.getActiveResourcesInfo().filter((kind) => kind === 'TCPSocketWrap').length
  return { held: heap + arrayBuffers, rss, sockets, faults }
}

const orders: Readonly<Record<Order, () => Promise<Told>>> = {
  measure: async () => taken(),
  // As the sweep does once nobody has used a session for a while.
  rest: async () => {
    sessions.rest(Number.MAX_SAFE_INTEGER)
    return taken()
  },
  close: async () => {
    await serving.close()
    await memory.close()
    return taken()
  },
}
process.on('message', async (order: Order) => {
  tell(await orders[order]())
  if (order === 'close') process.disconnect()
})
tell({ url: serving.url })
