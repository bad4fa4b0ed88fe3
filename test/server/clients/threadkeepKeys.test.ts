import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import Anthropic from '@anthropic-ai/sdk'
import { generateText } from 'ai'
import OpenAI from 'openai'
import { describe, expect } from 'vitest'
import { Credentials } from '../../../src/server/auth/credentials.ts'
import { verifies } from '../../requirements/verifies.ts'
import { createTempPaths } from '../../stores/tempPaths.ts'
import { openConfiguredServer } from '../config/harness.ts'
import { user } from '../start.ts'
import { catchError } from './harness.ts'
import { replyWith, startModelServer } from './modelServer.ts'

const fresh = createTempPaths()

/** Starts a server that requires Threadkeep keys, with a key for the tenant `acme` and configured upstream keys. */
async function startGuardedServer() {
  const [openai, anthropic, keys] = [
    await startModelServer(replyWith('Hello.')),
    await startModelServer(replyWith('Hello.')),
    fresh('.json'),
  ]
  const { key } = await new Credentials(keys).create({ scopes: ['acme'] }, Date.now())
  const upstreams = [
    { base: openai.url, protocol: 'openai', key: 'sk-server', models: ['gpt-*'] },
    { base: anthropic.url, protocol: 'anthropic', key: 'sk-ant-server', models: ['claude-*'] },
  ]
  const opened = await openConfiguredServer(fresh('.json'), {
    store: `sqlite:${fresh()}`,
    keys: { file: keys },
    upstreams,
  })
  const close = async (): Promise<void> => {
    await opened.server.close(0)
    await Promise.all([openai.close(), anthropic.close()])
  }
  return { url: opened.server.url, key, openai, anthropic, [Symbol.asyncDispose]: close }
}

const request = { max_tokens: 50, messages: [user('Hello')] }

describe('clients with a Threadkeep key', () => {
  verifies('S-03', 'use it as their API key, and upstreams receive only the configured keys', async () => {
    await using guarded = await startGuardedServer()
    const baseURL = `${guarded.url}/v1/acme:ann`
    const openai = new OpenAI({ baseURL, apiKey: guarded.key, maxRetries: 0 })
    await openai.chat.completions.create({ model: 'gpt-4o', messages: [user('Hello')] })
    await openai.responses.create({ model: 'gpt-4o', input: 'How are you?' })
    const provider = createOpenAICompatible({ name: 'threadkeep', baseURL, apiKey: guarded.key })
    await generateText({ model: provider('gpt-4o'), prompt: 'And you?', maxRetries: 0 })
    await new Anthropic({ baseURL, apiKey: guarded.key, maxRetries: 0 }).messages.create({
      ...request,
      model: 'claude-opus',
    })
    expect(guarded.openai.requests.map(({ headers }) => headers.authorization)).toEqual(
      Array(3).fill('Bearer sk-server'),
    )
    expect(guarded.anthropic.requests.map(({ headers }) => [headers.authorization, headers['x-api-key']])).toEqual([
      [undefined, 'sk-ant-server'],
    ])
    expect(JSON.stringify([...guarded.openai.requests, ...guarded.anthropic.requests])).not.toContain(guarded.key)
  })

  verifies('S-03', 'receive their own error classes for a wrong key and for a foreign tenant', async () => {
    await using guarded = await startGuardedServer()
    const sendChat = (tenant: string, apiKey: string) =>
      catchError(
        new OpenAI({ baseURL: `${guarded.url}/v1/${tenant}:ann`, apiKey, maxRetries: 0 }).chat.completions.create({
          ...request,
          model: 'gpt-4o',
        }),
      )
    const sendMessage = (tenant: string, apiKey: string) =>
      catchError(
        new Anthropic({ baseURL: `${guarded.url}/v1/${tenant}:ann`, apiKey, maxRetries: 0 }).messages.create({
          ...request,
          model: 'claude-opus',
        }),
      )
    expect(await sendChat('acme', 'sk-other')).toBeInstanceOf(OpenAI.AuthenticationError)
    expect(await sendChat('zeta', guarded.key)).toBeInstanceOf(OpenAI.NotFoundError)
    expect(await sendMessage('acme', 'sk-other')).toBeInstanceOf(Anthropic.AuthenticationError)
    expect(await sendMessage('acme', 'sk-other')).toMatchObject({ type: 'authentication_error' })
    expect(await sendMessage('zeta', guarded.key)).toBeInstanceOf(Anthropic.NotFoundError)
    expect([...guarded.openai.requests, ...guarded.anthropic.requests]).toEqual([])
  })
})
