import { countTokens } from 'gpt-tokenizer/encoding/o200k_base'
import { describe, expect } from 'vitest'
import { SentPrompts } from '../../../src/server/turn/sentPrompts.ts'
import { exactTokenizer } from '../../../src/tokenizers/tokenizers.ts'
import { isCampaign } from '../../context/campaign.ts'
import { verifies } from '../../requirements/verifies.ts'
import { sampleTurn } from '../../scenarios/sampleTurns.ts'
import { createHarness, type Harness } from '../clients/harness.ts'
import { failWith, type ReceivedRequest, replyWith } from '../clients/modelServer.ts'

const key = 'acme:ann'
const model = 'test-model'
const turns = isCampaign ? 30 : 15
const instructions = 'You are a careful assistant.\nAnswer in one sentence.'
/** US dollars per million tokens. */
const price = { input: 2, cached: 0.5, output: 10 }
const prices = { asOf: '2026-11-01', models: { [model]: price } }

type Said = { readonly role: string; readonly content: string }
type Protocol = 'chat' | 'messages'
type Client = { readonly protocol: Protocol; readonly streams: boolean; readonly history: 'full' | 'thin' }
type Tokens = Readonly<Record<'shown' | 'history' | 'saved' | 'cacheable' | 'prompt' | 'completion' | 'cached', number>>
type TurnReceipt = {
  readonly tokens: Tokens & { cacheableShare: number }
  readonly cost: Readonly<Record<string, number>>
}
type UpkeepReceipt = {
  readonly purpose: 'upkeep'
  readonly tokens: Pick<Tokens, 'prompt' | 'completion' | 'cached'>
  readonly cost: Readonly<Record<string, number>>
}

/** Sends a turn and returns the id of its receipt. */
async function sendTurn({ url }: Harness, { protocol, streams }: Client, messages: readonly Said[]): Promise<string> {
  const isChat = protocol === 'chat'
  const response = await fetch(`${url}/v1/${key}/${isChat ? 'chat/completions' : 'messages'}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...(isChat ? {} : { 'anthropic-version': '2023-06-01' }) },
    body: JSON.stringify({
      model,
      max_tokens: 50,
      ...(isChat ? {} : { system: instructions }),
      messages: isChat ? [{ role: 'system', content: instructions }, ...messages] : messages,
      ...(streams && { stream: true, ...(isChat && { stream_options: { include_usage: true } }) }),
    }),
  })
  expect([response.status, (await response.text()).length > 0]).toEqual([200, true])
  return response.headers.get('x-threadkeep-receipt') ?? ''
}

const readJson = async <T>({ url }: Harness, path: string): Promise<T> =>
  (await (await fetch(`${url}${path}`)).json()) as T

async function readMetrics({ url }: Harness, name: string): Promise<Readonly<Record<string, number>>> {
  const text = await (await fetch(`${url}/metrics`)).text()
  const lines = text.split('\n').filter((line) => line.startsWith(`threadkeep_${name}{`))
  return Object.fromEntries(
    lines.map((line) => {
      const [, labels = '', value = ''] = /\{(.*)\} (.*)$/.exec(line) ?? []
      return [labels, Number(value)]
    }),
  )
}

/** Client requests ask for at most 50 tokens, upkeep requests do not. */
const isUpkeep = ({ body }: ReceivedRequest): boolean => body.max_tokens !== 50

const textOf = (content: unknown): string =>
  typeof content === 'string' ? content : (content as { text: string }[]).map(({ text }) => text).join('\n')

/** The prompt of a recorded body as messages, in the order in which the model reads it. */
const promptOf = ({ body }: ReceivedRequest): readonly Said[] => [
  ...[body.system]
    .flat()
    .flatMap((block) => (block === undefined ? [] : [{ role: 'system', content: block.text ?? block }])),
  ...body.messages.map(({ role, content }: { role: string; content: unknown }) => ({ role, content: textOf(content) })),
]

const countMessage = ({ role, content }: Said): number => 3 + countTokens(role) + countTokens(content)
const countPrompt = (messages: readonly Said[]): number => messages.reduce((sum, said) => sum + countMessage(said), 3)

/** Tokens of the messages that two prompts begin with, and of the lines that the next message begins with. */
function countCommon(previous: readonly Said[], prompt: readonly Said[]): number {
  const isShared = ({ role, content }: Said, index: number): boolean =>
    role === previous[index]?.role && content === previous[index]?.content
  const different = prompt.findIndex((said, index) => !isShared(said, index))
  const shared = prompt.slice(0, different < 0 ? prompt.length : different)
  const [one, other] = [previous[shared.length], prompt[shared.length]]
  let lines = ''
  if (one !== undefined && other !== undefined && one.role === other.role)
    for (const line of other.content.split('\n').slice(0, -1)) {
      if (!one.content.startsWith(`${lines}${line}\n`)) break
      lines += `${line}\n`
    }
  const partial = lines === '' ? 0 : countMessage({ role: other?.role ?? '', content: lines })
  return shared.reduce((sum, said) => sum + countMessage(said), partial)
}

type Conversation = { readonly receipts: readonly TurnReceipt[]; readonly histories: readonly (readonly Said[])[] }

/** Holds a conversation; every history is the whole conversation at that turn. */
async function converse(harness: Harness, client: Client): Promise<Conversation> {
  const said: Said[] = []
  const receipts: TurnReceipt[] = []
  const histories: Said[][] = []
  for (let turn = 0; turn < turns; turn++) {
    const question = { role: 'user', content: String(sampleTurn(turn)[0].content) }
    const history = [...said, question]
    histories.push([{ role: 'system', content: instructions }, ...history])
    const id = await sendTurn(harness, client, client.history === 'full' ? history : [question])
    receipts.push(await readJson<TurnReceipt>(harness, `/api/receipts/${id}`))
    said.push(question, { role: 'assistant', content: replyTo(turn) })
    await harness.memory.upkeep.whenIdle()
  }
  return { receipts, histories }
}

const replyTo = (turn: number): string => `Noted as number ${turn}. ${sampleTurn(turn)[1].content}`

const openHarness = ({ protocol }: Client, budget: number | 'auto'): Promise<Harness> => {
  let turn = 0
  const script = (request: ReceivedRequest) => replyWith(isUpkeep(request) ? 'A summary.' : replyTo(turn++))
  return createHarness(script, protocol === 'chat' ? 'openai' : 'anthropic', [], { prices, budget })
}

/** A shortened prompt for Anthropic has fewer messages, and a notice before the first one, than the context that is counted. */
const maxDifference = ({ protocol }: Client, budget: number | 'auto'): number =>
  protocol === 'messages' && budget !== 'auto' ? 8 : 0

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)

describe('the receipts of a conversation', () => {
  for (const protocol of ['chat', 'messages'] as const)
    for (const history of ['full', 'thin'] as const)
      for (const [streams, budget] of [
        [true, 'auto'],
        [false, 1_500],
      ] as const) {
        const client = { protocol, streams, history }
        const name = `${protocol}, ${history} client, ${streams ? 'streamed' : 'not streamed'}, budget ${budget}`
        verifies('S-10', `${name} › equal the counts of the recorded bodies and of the whole history`, async () => {
          await using harness = await openHarness(client, budget)
          const { receipts, histories } = await converse(harness, client)
          const prompts = harness.model.requests.filter((request) => !isUpkeep(request)).map(promptOf)
          const expected = prompts.map((prompt, turn) => {
            const [shown, full] = [countPrompt(prompt), countPrompt(histories[turn] ?? [])]
            const cacheable = turn === 0 ? 0 : countCommon(prompts[turn - 1] ?? [], prompt)
            return { shown, history: full, saved: full - shown, cacheable }
          })
          for (const [turn, { tokens }] of receipts.entries()) {
            const {
              shown,
              history: full,
              saved,
              cacheable,
            } = expected[turn] ?? { shown: 0, history: 0, saved: 0, cacheable: 0 }
            expect([turn, tokens.history, tokens.cacheable]).toEqual([turn, full, cacheable])
            expect(tokens.saved).toBe(tokens.history - tokens.shown)
            expect(Math.abs(tokens.shown - shown)).toBeLessThanOrEqual(maxDifference(client, budget))
            expect(Math.abs(tokens.saved - saved)).toBeLessThanOrEqual(maxDifference(client, budget))
          }
          expect(expected.filter(({ cacheable }) => cacheable > 0).length).toBeGreaterThan(turns - 3)
          await expectSums(harness, receipts)
        })
      }
})

/** Usage and metrics are the sums of the receipts. */
async function expectSums(harness: Harness, receipts: readonly TurnReceipt[]): Promise<void> {
  const usage = await readJson<{ tokens: Tokens; cost: Record<string, number> }>(
    harness,
    `/api/sessions/${key}/metrics`,
  )
  const metrics = await readMetrics(harness, 'context_tokens_total')
  const metric = (kind: string): number => metrics[`kind="${kind}",profile="thread",scope="acme"`] ?? Number.NaN
  for (const kind of ['shown', 'history', 'saved', 'cacheable', 'prompt', 'completion', 'cached'] as const)
    expect([kind, usage.tokens[kind]]).toEqual([kind, sum(receipts.map(({ tokens }) => tokens[kind]))])
  expect([metric('shown'), metric('history'), metric('cacheable')]).toEqual([
    usage.tokens.shown,
    usage.tokens.history,
    usage.tokens.cacheable,
  ])
  expect(metric('saved') - metric('added')).toBe(usage.tokens.saved)
  expect(usage.cost.turns).toBeCloseTo(sum(receipts.map(({ cost }) => cost.total ?? 0)), 9)
  for (const { tokens, cost } of receipts) {
    const billed = (tokens.prompt - tokens.cached) * price.input + tokens.cached * price.cached
    expect(cost.input).toBeCloseTo(billed / 1e6, 9)
    expect(cost.total).toBeCloseTo((billed + tokens.completion * price.output) / 1e6, 9)
    expect(cost.saved).toBeCloseTo((tokens.saved * price.input) / 1e6, 9)
    expect(cost.cacheDiscount).toBeCloseTo((tokens.cached * (price.input - price.cached)) / 1e6, 9)
    expect(tokens.cacheableShare).toBeCloseTo(tokens.cacheable / tokens.shown, 9)
  }
}

describe('upkeep', () => {
  for (const protocol of ['chat', 'messages'] as const)
    verifies('S-10', `${protocol} › books the cost of its model calls to the session`, async () => {
      const client: Client = { protocol, streams: false, history: 'thin' }
      await using harness = await openHarness(client, 1_500)
      const { receipts } = await converse(harness, client)
      const calls = harness.model.requests.filter(isUpkeep).length
      expect(calls).toBeGreaterThan(0)
      const { items } = await readJson<{ items: (TurnReceipt | UpkeepReceipt)[] }>(
        harness,
        `/api/sessions/${key}/receipts?limit=100`,
      )
      const booked = items.filter((item): item is UpkeepReceipt => 'purpose' in item)
      expect([booked.length, items.length]).toEqual([calls, calls + receipts.length])
      const { prompt, completion, cached } = booked[0]?.tokens ?? {}
      const each =
        ((Number(prompt) - Number(cached)) * price.input +
          Number(cached) * price.cached +
          Number(completion) * price.output) /
        1e6
      expect([prompt, completion, cached]).toEqual([21, 8, 13])
      for (const { cost } of booked) expect(cost).toMatchObject({ total: expect.closeTo(each, 9), isEstimated: false })
      const usage = await readJson<{ upkeep: object; cost: Record<string, number> }>(
        harness,
        `/api/sessions/${key}/metrics`,
      )
      expect(usage.upkeep).toEqual({ calls, prompt: 21 * calls, completion: 8 * calls, cached: 13 * calls })
      expect(usage.cost.upkeep).toBeCloseTo(each * calls, 9)
      expect(usage.cost.total).toBeCloseTo(Number(usage.cost.turns) + each * calls, 9)
      expect(sum(Object.values(await readMetrics(harness, 'upkeep_calls_total')))).toBe(calls)
      const costs = Object.entries(await readMetrics(harness, 'cost_dollars_total'))
      const costOf = (purpose: string): number =>
        sum(costs.filter(([labels]) => labels.includes(`"${purpose}"`)).map(([, value]) => value))
      expect(costOf('upkeep')).toBeCloseTo(each * calls, 9)
      expect(costOf('turn')).toBeCloseTo(Number(usage.cost.turns), 9)
    })

  verifies(
    'S-10',
    'a server that rejects the request for token counts › is asked without, and its calls are estimated',
    async () => {
      const client: Client = { protocol: 'chat', streams: false, history: 'thin' }
      const script = (request: ReceivedRequest) => {
        if (!isUpkeep(request)) return replyWith(String(sampleTurn(0)[1].content))
        return request.body.stream_options === undefined ? replyWith('A summary.') : failWith(400)
      }
      await using harness = await createHarness(script, 'openai', [], { prices, budget: 1_500 })
      await converse(harness, client)
      const calls = harness.model.requests.filter(
        (request) => isUpkeep(request) && request.body.stream_options === undefined,
      )
      const { items } = await readJson<{ items: (TurnReceipt | UpkeepReceipt)[] }>(
        harness,
        `/api/sessions/${key}/receipts?limit=100`,
      )
      const booked = items.filter((item): item is UpkeepReceipt => 'purpose' in item).reverse()
      expect(booked.map(({ tokens }) => tokens)).toEqual(
        calls.map((call) => ({
          prompt: countPrompt(promptOf(call)),
          completion: countTokens('A summary.'),
          cached: 0,
        })),
      )
      expect(booked.every(({ cost }) => cost.isEstimated)).toBe(true)
    },
  )
})

describe('a prompt', () => {
  verifies('S-10', 'to which memory adds more than it leaves out › has negative savings', async () => {
    const client: Client = { protocol: 'chat', streams: false, history: 'full' }
    await using harness = await openHarness(client, 'auto')
    const knowledge = { category: 'domain', key: 'opening hours', value: 'Monday to Friday, nine to five' }
    await fetch(`${harness.url}/api/scopes/acme/knowledge`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(knowledge),
    })
    const question = { role: 'user', content: 'What are the opening hours?' }
    const id = await sendTurn(harness, client, [question])
    const { tokens, cost } = await readJson<TurnReceipt>(harness, `/api/receipts/${id}`)
    const [request] = harness.model.requests
    const shown = request === undefined ? 0 : countPrompt(promptOf(request))
    const history = countPrompt([{ role: 'system', content: instructions }, question])
    expect(JSON.stringify(request?.body)).toContain('nine to five')
    expect(tokens).toMatchObject({ shown, history, saved: history - shown })
    expect(tokens.saved).toBeLessThan(0)
    expect(cost.saved).toBeCloseTo((tokens.saved * price.input) / 1e6, 9)
    const metrics = await readMetrics(harness, 'context_tokens_total')
    expect(metrics['kind="added",profile="thread",scope="acme"']).toBe(-tokens.saved)
  })

  const bodyOf = (...messages: readonly unknown[]) => ({ model, messages })
  const memory = (...lines: readonly string[]) => ({ role: 'system', content: ['<memory>', ...lines].join('\n') })
  const hello = { role: 'user', content: 'Hello' }

  async function measure(previous: object, body: object): Promise<number> {
    const prompts = new SentPrompts()
    const counters = { tokenizer: await exactTokenizer('o200k_base'), countTools: () => 100 }
    const first = await prompts.measure(key, { ...counters, body: { ...previous } })
    prompts.record(key, first.digest, 'openai')
    return (await prompts.measure(key, { ...counters, body: { ...body } })).commonTokens
  }

  verifies('S-10', 'that differs within a message › shares the lines before the difference', async () => {
    const lines = countMessage({ role: 'system', content: '<memory>\nMiso is a cat.\n' })
    const [one, other] = [memory('Miso is a cat.', 'Rex'), memory('Miso is a cat.', 'Rex is a dog.')]
    const tools = 100
    expect(await measure(bodyOf(one, hello), bodyOf(other, hello))).toBe(tools + lines)
    expect(await measure(bodyOf(one, hello), bodyOf(one, { role: 'user', content: 'Bye' }))).toBe(
      tools + countMessage(one as Said),
    )
    expect(await measure(bodyOf(one, hello), bodyOf({ ...one, role: 'user' }, hello))).toBe(tools)
  })

  verifies('S-10', 'for another model or with other tools › shares nothing', async () => {
    expect(await measure(bodyOf(hello), { ...bodyOf(hello), model: 'other' })).toBe(0)
    expect(await measure(bodyOf(hello), { ...bodyOf(hello), tools: [{ type: 'function' }] })).toBe(0)
  })

  verifies('S-10', 'with moved cache markers › shares the marked messages', async () => {
    const block = (text: string, marker: object) => ({ role: 'user', content: [{ type: 'text', text, ...marker }] })
    const marker = { cache_control: { type: 'ephemeral' } }
    const [marked, plain, text] = [block('Hello', marker), block('Hello', {}), hello]
    for (const next of [plain, text])
      expect(await measure(bodyOf(marked), bodyOf(next, block('More', marker)))).toBe(100 + countMessage(hello))
  })
})
