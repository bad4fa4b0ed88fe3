/**
 * Prints, as JSON, the source files that run and the session heads that are read during the fifth turn of a chat over the
 * RAM store. Runs in a process of its own: V8's precise coverage counts everything in the process.
 */
import { createServer } from 'node:http'
import { Session } from 'node:inspector/promises'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import type { SearchIndex, Store } from '../../../src/domain/ports.ts'
import { openMemory } from '../../../src/index.ts'
import { serve } from '../../../src/server/serve.ts'
import { ramStore } from '../../../src/stores/ram.ts'

const reply = JSON.stringify({
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 0,
  model: 'test',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Noted.' }, finish_reason: 'stop' }],
})
const upstream = createServer((request, response) => {
  request.resume().on('end', () => response.writeHead(200, { 'content-type': 'application/json' }).end(reply))
})
await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve))

const heads: string[] = []
const ram = ramStore()
const store = new Proxy(ram, {
  get(target, name) {
    const value = Reflect.get(target, name, target)
    if (name === 'readHead')
      return (...args: Parameters<Store['readHead']>) => {
        heads.push(`${args[0].scope}:${args[0].id}`)
        return target.readHead(...args)
      }
    return typeof value === 'function' ? value.bind(target) : value
  },
}) as Store & SearchIndex
const memory = await openMemory({ store })
const server = await serve({
  memory,
  port: 0,
  upstream: `http://127.0.0.1:${(upstream.address() as AddressInfo).port}/v1`,
})

const history: { role: string; content: string }[] = []
async function takeTurn(question: string): Promise<void> {
  history.push({ role: 'user', content: question })
  const response = await fetch(`${server.url}/v1/acme:ann/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'test', messages: history }),
  })
  const { choices } = (await response.json()) as { choices: { message: { role: string; content: string } }[] }
  history.push(choices[0]?.message as { role: string; content: string })
}

for (const question of ['My cat is called Miso.', 'I live in Porto.', 'What do cats eat?', 'Thanks.'])
  await takeTurn(question)
const inspector = new Session()
inspector.connect()
await inspector.post('Profiler.enable')
await inspector.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
await inspector.post('Profiler.takePreciseCoverage')
heads.length = 0
await takeTurn('What is my cat called?')
const headsRead = [...heads]
const { result } = await inspector.post('Profiler.takePreciseCoverage')
const src = fileURLToPath(new URL('../../../src/', import.meta.url))
const files = result
  .filter(({ url, functions }) => url.includes('/src/') && functions.some(({ ranges }) => (ranges[0]?.count ?? 0) > 0))
  .map(({ url }) => (url.startsWith('file:') ? fileURLToPath(url) : url))
  .filter((path) => path.startsWith(src))
  .map((path) => path.slice(src.length))
console.log(JSON.stringify({ files: files.sort(), heads: headsRead }))
await server.close()
await memory.close()
upstream.close()
upstream.closeAllConnections()
