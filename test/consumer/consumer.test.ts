import { execFile } from 'node:child_process'
import { cpSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, it } from 'vitest'
import { type RecordedRequest, startModel } from '../agents/recorder.ts'
import { installPackage } from '../package/packed.ts'
import { verifies } from '../requirements/verifies.ts'
import { findRequestErrors } from '../server/clients/requestRules.ts'
import type { ScriptedReply } from '../server/clients/responseFormats.ts'
import { root } from '../shape/source.ts'
import { createTempPaths } from '../stores/tempPaths.ts'
import { listUnexportedTypes } from './declarations.ts'

const run = promisify(execFile)
const project = createTempPaths()('')

/** Dependencies that a memory passes to its own parts. They can be named, and what they consist of is internal. */
const internalTypes = [
  'ContextBuilder',
  'CreateEmbeddingQueue',
  'LifecycleDeps',
  'MemoryDeps',
  'ModelCall',
  'SecretMasker',
  'UpkeepDeps',
]

/** Type-checks the project and returns the errors. */
async function compile(config: string): Promise<string> {
  const compiler = join(root, 'node_modules/typescript/bin/tsc')
  return run(process.execPath, [compiler, '-p', config], { cwd: project }).then(
    () => '',
    ({ stdout, stderr }: { stdout: string; stderr: string }) => stdout + stderr,
  )
}

const call = { id: 'call_1', name: 'weather', input: { city: 'Bern' } }
const answer: ScriptedReply = { text: 'It is sunny.', thinking: 'The tool has answered.' }

/** Asks for the weather once, then answers. */
const script = ({ body }: RecordedRequest): ScriptedReply =>
  /sunny/.test(JSON.stringify(body.messages))
    ? answer
    : { text: 'Let me look.', thinking: 'Ask the tool.', calls: [call] }

/** Runs a program of the project against a scripted model; returns its last context and what the model received. */
async function runWith(program: string, path: string) {
  await using model = await startModel(script)
  const env = { PATH: process.env.PATH, MODEL_URL: `${model.url}${path}` }
  const { stdout } = await run(process.execPath, [program], { cwd: project, env })
  for (const { path: requested, body } of model.requests)
    expect(findRequestErrors({ path: requested, body: body as never })).toEqual([])
  return { context: JSON.parse(stdout) as unknown, requests: model.requests.map(({ body }) => body) }
}

describe('a project that installs the package', () => {
  beforeAll(async () => {
    cpSync(join(root, 'test/consumer/project'), project, { recursive: true })
    cpSync(join(root, 'examples'), join(project, 'examples'), { recursive: true })
    writeFileSync(join(project, 'package.json'), '{ "type": "module", "private": true }')
    await installPackage(project)
  })

  for (const resolution of ['nodenext', 'bundler'])
    verifies(
      'P-01',
      `types › with the resolution ${resolution} › fit the three SDKs both ways without a cast`,
      async () => expect(await compile(`tsconfig.${resolution}.json`)).toBe(''),
    )

  it('declarations › checked in full under strict options › have no errors', async () =>
    expect(await compile('tsconfig.own.json')).toBe(''))

  it.each(['index', 'browser'])('%s › types that public signatures mention › are exported', (entry) => {
    const unexported = listUnexportedTypes(join(project, `node_modules/threadkeep/dist/${entry}.d.ts`))
    expect(unexported.filter((line) => !internalTypes.some((name) => line.endsWith(` in ${name}`)))).toEqual([])
  })

  verifies('P-01', 'openai › with an image and tools › gets contexts and returns replies', async () => {
    const { context, requests } = await runWith('openai.ts', '/v1')
    const question = {
      role: 'user',
      content: [
        { type: 'text', text: 'What is the weather where this was taken?' },
        { type: 'image_url', image_url: { url: 'https://example.com/bern.png' } },
      ],
    }
    const tool_calls = [{ id: 'call_1', type: 'function', function: { name: 'weather', arguments: '{"city":"Bern"}' } }]
    const loop = [
      { role: 'assistant', content: 'Let me look.', tool_calls },
      { role: 'tool', tool_call_id: 'call_1', content: 'sunny in {"city":"Bern"}' },
    ]
    expect(requests.map(({ messages }) => messages)).toEqual([[question], [question, ...loop]])
    expect(context).toEqual([
      { role: 'user', content: 'What is the weather where this was taken?\n[image]' },
      ...loop,
      { role: 'assistant', content: 'It is sunny.' },
    ])
  })

  verifies('P-01', '@anthropic-ai/sdk › with thinking and tools › gets contexts and returns replies', async () => {
    const { context, requests } = await runWith('anthropic.ts', '')
    const question = { role: 'user', content: 'What is the weather in Bern?' }
    expect(requests.map(({ system }) => system)).toEqual(['Be brief.', 'Be brief.'])
    expect(requests.map(({ messages }) => messages)).toEqual([
      [question],
      [
        question,
        {
          role: 'assistant',
          content: [
            { type: 'thinking', thinking: 'Ask the tool.', signature: 'c2lnbmVk' },
            { type: 'text', text: 'Let me look.' },
            { type: 'tool_use', ...call },
          ],
        },
        {
          role: 'user',
          content: [{ type: 'tool_result', tool_use_id: 'call_1', content: 'sunny in {"city":"Bern"}' }],
        },
      ],
    ])
    expect(context).toMatchObject([
      { role: 'system' },
      question,
      { tool_calls: [{}] },
      { role: 'tool' },
      { content: 'It is sunny.' },
    ])
  })

  verifies('P-01', 'ai › with instructions and tools › gets contexts and returns response messages', async () => {
    const { context, requests } = await runWith('aiSdk.ts', '/v1')
    const system = { role: 'system', content: 'Be brief.' }
    const last = requests.at(-1)?.messages
    expect(requests).toHaveLength(3)
    expect(last).toMatchObject([
      system,
      { role: 'user', content: 'What is the weather in Bern?' },
      { role: 'assistant', content: 'Let me look.', tool_calls: [{ function: { name: 'weather' } }] },
      { role: 'tool', tool_call_id: 'call_1', content: '{"sky":"sunny","city":"Bern"}' },
      { role: 'assistant', content: 'It is sunny.' },
      { role: 'user', content: 'And tomorrow?' },
    ])
    expect(context).toHaveLength(7)
  })
})
