// Threadkeep server with memory in RAM.
import { openMemory } from '../../src/index.ts'
import { serve } from '../../src/server/serve.ts'

const [upstream = ''] = process.argv.slice(2)
const { url } = await serve({ memory: await openMemory({ profile: 'support' }), port: 0, upstream: `${upstream}/v1` })
process.send?.({ port: Number(new URL(url).port) })
