import { describe, expect } from 'vitest'
import { verifies } from '../../requirements/verifies.ts'
import { assistant, type TestServer, user } from '../start.ts'
import { createSharedStores, openSharedServers, type SharedServers, session } from './sharedServers.ts'

const secret = 'AKIAZ7QK4XPLM2NRT5WV'
const told = `My access key is ${secret}, keep it.`
const question = 'What is my access key?'

/** Sends messages and returns the prompt, the header about degradation and the notices of the receipt. */
async function ask(shared: SharedServers, index: number, messages: readonly unknown[]) {
  const server = shared.servers[index] as TestServer
  const response = await server.postChat(session, { model: 'm', messages })
  await response.text()
  const receipt = await server.requestJson(`GET /api/receipts/${response.headers.get('x-threadkeep-receipt')}`)
  return {
    hasSecret: JSON.stringify(shared.model.requests.at(-1)?.body.messages).includes(secret),
    degraded: response.headers.get('x-threadkeep-degraded'),
    notices: (receipt.body as { degraded: readonly { message: string }[] }).degraded.map(({ message }) => message),
  }
}

describe.each(await createSharedStores())('a secret told to one server, store %s', (_, store) => {
  verifies('X-08', 'asked for on another one › is shown as a placeholder, and the receipt says so', async () => {
    await using shared = await openSharedServers(store(), 2)
    await shared.ask(0, told)
    expect(await ask(shared, 0, [user(question)])).toEqual({ hasSecret: true, degraded: null, notices: [] })
    expect(await ask(shared, 1, [user(question)])).toEqual({
      hasSecret: false,
      degraded: 'secrets-unknown-here',
      notices: ['The model was sent placeholders for secrets of this session: this server has not seen their values.'],
    })
  })

  verifies('X-08', 'asked for on another one by a client that resends it › is shown', async () => {
    await using shared = await openSharedServers(store(), 2)
    await shared.ask(0, told)
    const history = [user(told), assistant(`Re: ${told}`), user(question)]
    expect(await ask(shared, 1, history)).toEqual({ hasSecret: true, degraded: null, notices: [] })
    expect(await shared.transcript()).toHaveLength(4)
  })
})
