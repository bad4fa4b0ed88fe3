import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import Anthropic from '@anthropic-ai/sdk'
import { generateText } from 'ai'
import OpenAI from 'openai'
import { describe, expect } from 'vitest'
import { Credentials } from '../../../src/server/auth/credentials.ts'
import { verifies } from '../../requirements/verifies.ts'
import { freshFiles } from '../../stores/places.ts'
import { stage } from '../config/stage.ts'
import { user } from '../start.ts'
import { says, startModel } from './model.ts'
import { failure } from './stage.ts'

const fresh = freshFiles()

/** A server that asks for keys, with one for the tenant `acme`, before model servers whose keys it has itself. */
async function openGuarded() {
  const [openai, anthropic, keys] = [await startModel(says('Hello.')), await startModel(says('Hello.')), fresh('.json')]
  const { key } = await new Credentials(keys).create({ scopes: ['acme'] }, Date.now())
  const upstreams = [
    { base: openai.url, protocol: 'openai', key: 'sk-house', models: ['gpt-*'] },
    { base: anthropic.url, protocol: 'anthropic', key: 'sk-ant-house', models: ['claude-*'] },
  ]
  const staged = await stage(fresh('.json'), { store: `sqlite:${fresh()}`, keys: { file: keys }, upstreams })
  const close = async (): Promise<void> => {
    await staged.server.close(0)
    await Promise.all([openai.close(), anthropic.close()])
  }
  return { url: staged.server.url, key, openai, anthropic, [Symbol.asyncDispose]: close }
}

const talk = { max_tokens: 50, messages: [user('Hello')] }

describe('clients that were given a key of this server', () => {
  verifies('S-03', 'use it as their own, and model servers see only the key of the house', async () => {
    await using house = await openGuarded()
    const baseURL = `${house.url}/v1/acme:ann`
    const openai = new OpenAI({ baseURL, apiKey: house.key, maxRetries: 0 })
    await openai.chat.completions.create({ model: 'gpt-4o', messages: [user('Hello')] })
    await openai.responses.create({ model: 'gpt-4o', input: 'How are you?' })
    const provider = createOpenAICompatible({ name: 'threadkeep', baseURL, apiKey: house.key })
    await generateText({ model: provider('gpt-4o'), prompt: 'And you?', maxRetries: 0 })
    await new Anthropic({ baseURL, apiKey: house.key, maxRetries: 0 }).messages.create({
      ...talk,
      model: 'claude-opus',
    })
    expect(house.openai.requests.map(({ headers }) => headers.authorization)).toEqual(Array(3).fill('Bearer sk-house'))
    expect(house.anthropic.requests.map(({ headers }) => [headers.authorization, headers['x-api-key']])).toEqual([
      [undefined, 'sk-ant-house'],
    ])
    expect(JSON.stringify([...house.openai.requests, ...house.anthropic.requests])).not.toContain(house.key)
  })

  verifies(
    'S-03',
    'are told by their own classes that a key is wrong, or another tenant is none of theirs',
    async () => {
      await using house = await openGuarded()
      const chat = (tenant: string, apiKey: string) =>
        failure(
          new OpenAI({ baseURL: `${house.url}/v1/${tenant}:ann`, apiKey, maxRetries: 0 }).chat.completions.create({
            ...talk,
            model: 'gpt-4o',
          }),
        )
      const message = (tenant: string, apiKey: string) =>
        failure(
          new Anthropic({ baseURL: `${house.url}/v1/${tenant}:ann`, apiKey, maxRetries: 0 }).messages.create({
            ...talk,
            model: 'claude-opus',
          }),
        )
      expect(await chat('acme', 'sk-other')).toBeInstanceOf(OpenAI.AuthenticationError)
      expect(await chat('zeta', house.key)).toBeInstanceOf(OpenAI.NotFoundError)
      expect(await message('acme', 'sk-other')).toBeInstanceOf(Anthropic.AuthenticationError)
      expect(await message('acme', 'sk-other')).toMatchObject({ type: 'authentication_error' })
      expect(await message('zeta', house.key)).toBeInstanceOf(Anthropic.NotFoundError)
      expect([...house.openai.requests, ...house.anthropic.requests]).toEqual([])
    },
  )
})
