import { getHeapSpaceStatistics } from 'node:v8'
import { openMemory } from '../../../src/index.ts'
import { serve } from '../../../src/server/serve.ts'
import { ramStore } from '../../../src/stores/ram.ts'
import { zstdCompressor } from '../../../src/stores/zstd.ts'
import type { Measurement, Options, ProcessCommand, ProcessMessage } from './serverProcess.ts'

/**
 * Runs a server in a process of its own with `--expose-gc`, so that memory measurements include the server only: see
 * serverProcess.ts.
 */
const { upstream, profile, store, maxUncompressedBytes } = JSON.parse(process.argv[2] ?? '{}') as Required<Options>
const faults: string[] = []
const sessions = ramStore({
  ...(zstdCompressor === undefined ? {} : { compressor: zstdCompressor }),
  maxUncompressedBytes,
})
const memory = await openMemory({ profile, store, ...(profile === 'support' ? { sessions } : {}) })
const serving = await serve({
  memory,
  port: 0,
  upstream,
  retries: { tries: 1 },
  onFault: (_, trace) => faults.push(trace),
})
const send = (message: ProcessMessage): boolean | undefined => process.send?.(message)

/** Memory after garbage collection. Compiled code is excluded because the engine discards it at will. */
function measure(): Measurement {
  globalThis.gc?.()
  globalThis.gc?.()
  const { arrayBuffers, rss } = process.memoryUsage()
  const spaces = getHeapSpaceStatistics().filter(({ space_name: name }) => !/code|trusted|read_only/.test(name))
  const heap = spaces.reduce((sum, { space_used_size: used }) => sum + used, 0)
  const sockets = process.getActiveResourcesInfo().filter((kind) => kind === 'TCPSocketWrap').length
  return { heapBytes: heap + arrayBuffers, rss, sockets, faults }
}

const commands: Readonly<Record<ProcessCommand, () => Promise<ProcessMessage>>> = {
  measure: async () => measure(),
  // As the sweep does for idle sessions.
  compressIdle: async () => {
    sessions.capabilities.memoryLimit.compressIdle(Number.MAX_SAFE_INTEGER)
    return measure()
  },
  close: async () => {
    await serving.close()
    await memory.close()
    return measure()
  },
}
process.on('message', async (command: ProcessCommand) => {
  send(await commands[command]())
  if (command === 'close') process.disconnect()
})
send({ url: serving.url })
