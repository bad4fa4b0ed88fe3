import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createPdf } from '../files/fixtures.ts'
import type { Agent, Workspace } from './agent.ts'
import { listWords, viewConversation } from './conversationView.ts'
import { findDifference } from './difference.ts'
import { killDaemons, type Output, run } from './processes.ts'
import { type RecordedRequest, startModel, startTap } from './recorder.ts'
import { type Exchange, locate, playDialogue } from './scriptedModel.ts'
import { startThreadkeep, type Threadkeep } from './threadkeep.ts'

/** A dialogue with an agent; undefined if the agent has no such feature without a terminal. */
export type Scenario = {
  readonly name: string
  plan(agent: Agent, workspace: Workspace): Plan | undefined
}
type Plan = {
  readonly exchanges: readonly Exchange[]
  /** Compacts the session before the last prompt. */
  readonly compacts?: boolean
}

const sky: Exchange = { prompt: 'Which colour has the sky at noon?', answer: 'The sky is blue at noon.' }
const sea: Exchange = { prompt: 'Which colour has the sea at night?', answer: 'The sea is black at night.' }
const grass: Exchange = { prompt: 'Which colour has the grass in May?', answer: 'The grass is green in May.' }
const lookUp = {
  prompt: 'Find out which harbour is the oldest.',
  answer: 'The oldest harbour is Byblos.',
  isSubagent: true,
}

export const scenarios: readonly Scenario[] = [
  { name: 'answer', plan: () => ({ exchanges: [sky] }) },
  { name: 'resume', plan: ({ resumes }) => (resumes ? { exchanges: [sky, sea] } : undefined) },
  {
    name: 'tool loop',
    plan: ({ calls, resumes }, { project }) => ({
      exchanges: [
        {
          prompt: 'Which word is in notes.txt?',
          calls: [calls.readFile(join(project, 'notes.txt'))],
          answer: 'The word is lighthouse.',
        },
        ...(resumes ? [sea] : []),
      ],
    }),
  },
  {
    name: 'PDF',
    plan: ({ calls: { readPdf }, resumes }, { project }) =>
      readPdf && {
        exchanges: [
          {
            prompt: 'Which heading has report.pdf?',
            calls: [readPdf(join(project, 'report.pdf'))],
            answer: 'The heading is Tides.',
          },
          ...(resumes ? [sea] : []),
        ],
      },
  },
  {
    name: 'compaction',
    plan: ({ compact, askCompacted }) =>
      compact === undefined && askCompacted === undefined
        ? undefined
        : { exchanges: [sky, sea, grass], compacts: true },
  },
  {
    name: 'sub-agent',
    plan: ({ calls: { startSubagent }, resumes }) =>
      startSubagent && {
        exchanges: [
          lookUp,
          {
            prompt: 'Ask a sub-agent for the oldest harbour.',
            calls: [startSubagent(lookUp.prompt)],
            answer: 'It says Byblos.',
          },
          ...(resumes ? [sea] : []),
        ],
      },
  },
]

export type Result = {
  /** Reasons of failure; empty if the scenario passed. */
  readonly faults: readonly string[]
  readonly requests: number
  readonly differences: readonly string[]
  readonly auxiliary: number
  readonly sent: readonly RecordedRequest[]
  readonly forwarded: readonly RecordedRequest[]
}

/**
 * Runs a scenario through a proxy of its own; undefined if the agent has no such feature. With `isDirect` there is no
 * proxy, which shows that the agent can do what the scenario asks for.
 */
export async function runScenario(agent: Agent, scenario: Scenario, isDirect: boolean): Promise<Result | undefined> {
  const folder = mkdtempSync(join(tmpdir(), 'threadkeep-agents-'))
  const [home, project] = [join(folder, 'home'), join(folder, 'project')]
  const plan = scenario.plan(agent, { home, project, baseUrl: '' })
  if (plan === undefined) {
    rmSync(folder, { recursive: true })
    return undefined
  }
  createProject(home, project)
  try {
    await using model = await startModel((request) => playDialogue(request, plan.exchanges))
    await using threadkeep = isDirect ? undefined : await startThreadkeep(folder, model.url, agent.protocol)
    await using tap = await startTap(threadkeep?.url ?? model.url)
    const key = `agents:${agent.package.replace(/\W+/g, '-')}`
    const workspace = { home, project, baseUrl: `${tap.url}/v1/${key}` }
    const faults = await converse(agent, workspace, plan)
    killDaemons(home)
    if (threadkeep !== undefined) faults.push(...(await checkTranscript(threadkeep, key, plan, tap.requests)))
    return { faults, ...compareRequests(tap.requests, model.requests, plan.exchanges) }
  } finally {
    killDaemons(home)
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
  }
}

function createProject(home: string, project: string): void {
  mkdirSync(home)
  mkdirSync(project)
  writeFileSync(join(project, 'notes.txt'), 'lighthouse\n')
  writeFileSync(join(project, 'report.pdf'), createPdf(['Tides']))
}

/** Asks all prompts of the user, each in a process of its own, and compares what the agent prints. */
async function converse(agent: Agent, workspace: Workspace, { exchanges, compacts }: Plan): Promise<string[]> {
  const faults: string[] = []
  const asked = exchanges.filter(({ isSubagent }) => isSubagent !== true)
  await agent.prepare?.(workspace)
  for (const [index, { prompt, answer }] of asked.entries()) {
    const isCompacted = compacts === true && index === asked.length - 1
    if (isCompacted) await agent.compact?.(workspace)
    const command =
      isCompacted && agent.askCompacted !== undefined
        ? agent.askCompacted(workspace, prompt)
        : agent.ask(workspace, prompt, index > 0)
    const output = await run(command)
    const printed = agent.readAnswer(output.stdout)
    if (printed !== answer) faults.push(`printed ${describeOutput(printed, output)} for ${JSON.stringify(answer)}`)
  }
  return faults
}

const describeOutput = (printed: string, { stderr, code }: Output): string =>
  JSON.stringify(printed.slice(-200)) + (code === 0 ? '' : ` and ended with ${code}: ${stderr.trim().slice(-300)}`)

/**
 * The transcript is all that the user has seen, every word once and in order. It also has the conversations of
 * sub-agents and, after a compaction, what the client put in the place of its history.
 */
async function checkTranscript(
  threadkeep: Threadkeep,
  key: string,
  { exchanges, compacts }: Plan,
  sent: readonly RecordedRequest[],
): Promise<readonly string[]> {
  const asked = exchanges.filter(({ isSubagent }) => isSubagent !== true)
  const seen = asked.flatMap(({ prompt, answer }) => [`user: ${prompt}`, `assistant: ${answer}`])
  const last = sent.findLast((request) => locate(request, asked) !== undefined)
  const replacements = last === undefined || compacts !== true ? [] : listWords(viewConversation(last))
  const stored = listWords(await threadkeep.readTranscript(key))
  const added = new Set(replacements.filter((line) => !seen.includes(line)))
  const delegated = exchanges.filter(({ isSubagent }) => isSubagent === true)
  const isDelegated = (line: string): boolean =>
    delegated.some(({ prompt, answer }) => line.includes(prompt) || line === `assistant: ${answer}`)
  return describeMismatch(
    stored.filter((line) => !added.has(line) && !isDelegated(line)),
    seen,
  )
}

function describeMismatch(stored: readonly string[], expected: readonly string[]): readonly string[] {
  const index = expected.findIndex((line, position) => line !== stored[position])
  const clip = (line: string | undefined): string => JSON.stringify(line?.slice(0, 90)) ?? 'nothing'
  if (index >= 0)
    return [`stored ${clip(stored[index])} as message ${index + 1} of ${stored.length}, for ${clip(expected[index])}`]
  const extra = stored.slice(expected.length)
  return extra.length === 0 ? [] : [`stored ${extra.length} more, first ${clip(extra[0])}`]
}

/** Compares each request that the agent sent with the one that reached the model. */
function compareRequests(
  sent: readonly RecordedRequest[],
  forwarded: readonly RecordedRequest[],
  exchanges: readonly Exchange[],
): Omit<Result, 'faults'> {
  const differences = sent.flatMap(({ number, body }) => {
    const received = forwarded.find((request) => request.number === number)
    const difference = received === undefined ? 'not forwarded' : findDifference(body, received.body)
    return difference === undefined ? [] : [`${number}: ${difference}`]
  })
  const auxiliary = sent.filter((request) => locate(request, exchanges) === undefined).length
  return { requests: sent.length, differences, auxiliary, sent, forwarded }
}
