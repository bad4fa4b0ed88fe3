import { describe, expect, it } from 'vitest'
import { verifies } from '../requirements/verifies.ts'
import { startServer, user } from './start.ts'

/** Status and error for a key in the path. */
async function responsesFor(keys: readonly string[]): Promise<readonly (readonly [key: string, answer: unknown])[]> {
  await using server = await startServer()
  const found: [string, unknown][] = []
  for (const key of keys) {
    const response = await server.postChat(key, { messages: [user('Hello')] })
    const body = (await response.json()) as { error?: { message: string; type: string; param: string; code: string } }
    found.push([key, body.error === undefined ? response.status : { status: response.status, ...body.error }])
  }
  return found
}

const advice = 'Write scope or scope:session, for example acme:+15551234567.'
const refused = (message: string) => ({
  status: 400,
  message: `${message} ${advice}`,
  type: 'invalid_request_error',
  param: 'key',
  code: 'bad-key',
})
const letters = 'may hold only the letters A-Z and a-z, digits and _ + - . @.'

describe('keys in the path', () => {
  verifies(
    'T-11',
    'with letters, digits and + - . @ _, 1–64 before the colon and 1–128 after it › are accepted',
    async () => {
      const good = [
        'a',
        'acme:+15551234567',
        'acme:ann@example.com',
        'example.com:42',
        'a-b_c:d.e',
        'a%3Ab',
        `${'s'.repeat(64)}:${'i'.repeat(128)}`,
      ]
      expect(await responsesFor(good)).toEqual(good.map((key) => [key, 200]))
    },
  )

  verifies(['T-11', 'T-01'], "anything else › is refused in OpenAI's error format", async () => {
    const [scope, session] = ['s'.repeat(65), 'i'.repeat(129)]
    const wrong = [
      ['a%20b', `The scope of key "a b" ${letters}`],
      ['%E2%80%8Ba', `The scope of key "\u200ba" ${letters}`],
      ['p%D0%B0ypal', `The scope of key "p\u0430ypal" ${letters}`],
      ['a:b:c', `The session of key "a:b:c" ${letters}`],
      ['a%2Fb', `The scope of key "a/b" ${letters}`],
      ['a%252Fb', `The scope of key "a%2Fb" ${letters}`],
      ['__proto__', 'The scope of key "__proto__" is the reserved word __proto__.'],
      ['constructor:1', 'The scope of key "constructor:1" is the reserved word constructor.'],
      ['a:__proto__', 'The session of key "a:__proto__" is the reserved word __proto__.'],
      ['a:%2E%2E', 'The session of key "a:.." is the reserved word ...'],
      [':b', 'The scope of key ":b" is empty.'],
      ['a:', 'The session of key "a:" is empty.'],
      [scope, `The scope of key "${scope}" is longer than 64 characters.`],
      [`a:${session}`, `The session of key "a:${'i'.repeat(78)}…" is longer than 128 characters.`],
      ['%ZZ', 'The key in the URL is not URL-encoded correctly.'],
    ] as const
    expect(await responsesFor(wrong.map(([key]) => key))).toEqual(
      wrong.map(([key, message]) => [key, refused(message)]),
    )
  })

  it('are also validated on the models route', async () => {
    await using server = await startServer()
    expect((await fetch(`${server.url}/v1/a%20b/models`)).status).toBe(400)
  })
})
