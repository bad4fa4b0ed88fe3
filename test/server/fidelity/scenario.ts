import { failWith, replyWith } from '../clients/modelServer.ts'
import type { Protocol, Recorder } from './recorder.ts'

/** A client library with the types of its own messages. */
export type ClientAdapter<Message> = {
  createQuestion(text: string): readonly Message[]
  /** Creates a question with a PDF. */
  createDocumentQuestion(text: string): readonly Message[]
  /** Sends a conversation, runs the tools that the model calls, and returns the messages to add to the conversation. */
  send(conversation: readonly Message[]): Promise<readonly Message[]>
}

/** A client stack under test. */
export type ClientStack = {
  readonly name: string
  readonly protocol: Protocol
  /** Runs all steps of the scenario and returns the errors that the client raised, by step. */
  run(recorder: Recorder): Promise<ReadonlyMap<string, unknown>>
}

export const defineStack = <Message>(
  name: string,
  protocol: Protocol,
  createAdapter: (recorder: Recorder) => ClientAdapter<Message>,
): ClientStack => ({ name, protocol, run: (recorder) => runScenario(createAdapter(recorder), recorder) })

const rome = { name: 'weather', input: { city: 'Rome' } }
const oslo = { name: 'weather', input: { city: 'Oslo' } }

/** A model's reply with reasoning and two parallel calls, and its reply to the results. */
const useTools = (turn: number) => [
  replyWith({
    thinking: 'I compare both cities.',
    text: 'I will look.',
    calls: [
      { ...rome, id: `call_${turn}a` },
      { ...oslo, id: `call_${turn}b` },
    ],
  }),
  replyWith({ thinking: 'Twenty-one is more than four.', text: `Rome is warmer (${turn}).` }),
]

/** Steps in order. Steps of one conversation share a prefix with the step before. */
export const steps = {
  main: [
    'the first turn',
    'a tool loop with reasoning',
    'a document',
    'a failed attempt (500)',
    'a retry after a 500',
    'an edit of an earlier message',
    'a regenerated answer',
    'a second tool loop',
    'a request for a summary',
  ],
  compacted: ['the first turn after a compaction', 'a tool loop after a compaction'],
  subAgent: ['the first message of a sub-agent', 'a tool loop of a sub-agent'],
  resumed: ['a turn after a sub-agent'],
} as const

/** A conversation by turns, of which each can be changed. */
type Turn<Message> = { question: readonly Message[]; answer: readonly Message[] }

async function runScenario<Message>(
  adapter: ClientAdapter<Message>,
  recorder: Recorder,
): Promise<ReadonlyMap<string, unknown>> {
  const errors = new Map<string, unknown>()
  const send = async (step: string, turns: Turn<Message>[]): Promise<void> => {
    const last = turns.at(-1) as Turn<Message>
    last.answer = []
    try {
      last.answer = await adapter.send(turns.flatMap(({ question, answer }) => [...question, ...answer]))
    } catch (error) {
      errors.set(step, error)
    }
  }
  const ask = async (step: string, turns: Turn<Message>[], question: readonly Message[]): Promise<void> => {
    turns.push({ question, answer: [] })
    await send(step, turns)
    // A conversation with an unanswered question would make the following steps fail as well.
    if (turns.at(-1)?.answer.length === 0) turns.pop()
  }
  await runMainSteps(adapter, recorder, { ask, send })
  await runOtherSteps(adapter, recorder, ask)
  return errors
}

type Send<Message> = (step: string, turns: Turn<Message>[]) => Promise<void>
type Ask<Message> = (step: string, turns: Turn<Message>[], question: readonly Message[]) => Promise<void>

async function runMainSteps<Message>(
  { createQuestion, createDocumentQuestion }: ClientAdapter<Message>,
  recorder: Recorder,
  { ask, send }: { readonly ask: Ask<Message>; readonly send: Send<Message> },
): Promise<void> {
  const [first, tools, document, failed, retry, edit, regenerated, secondTools, summary] = steps.main
  const main: Turn<Message>[] = []
  recorder.begin(first, replyWith('It shows the weather of any city.'))
  await ask(first, main, createQuestion('Docs: the app shows cats. What is this app for?'))
  // Before the second request the server cannot know that this client resends its conversation.
  await recorder.rememberFact()
  recorder.begin(tools, ...useTools(2))
  await ask(tools, main, createQuestion('Where is it warmer, in Rome or in Oslo?'))
  recorder.begin(document, replyWith('The report says hello.'))
  await ask(document, main, createDocumentQuestion('What does the report say?'))
  recorder.begin(failed, failWith(500))
  main.push({ question: createQuestion('Is that all?'), answer: [] })
  await send(failed, main)
  recorder.begin(retry, replyWith('Yes, that is all.'))
  await send(retry, main)
  main[0] = {
    question: createQuestion('Docs: the app shows dogs. What is this app for?'),
    answer: main[0]?.answer ?? [],
  }
  recorder.begin(edit, replyWith('It shows dogs.'))
  await ask(edit, main, createQuestion('And what does it show now?'))
  recorder.begin(regenerated, replyWith('It shows dogs and the weather.'))
  await send(regenerated, main)
  recorder.begin(secondTools, ...useTools(6))
  await ask(secondTools, main, createQuestion('Is it still warmer in Rome?'))
  recorder.begin(summary, replyWith('The user asked about the weather app. Rome is warmer than Oslo.'))
  await ask(summary, main, createQuestion('Your task is to create a detailed summary of the conversation so far.'))
}

async function runOtherSteps<Message>(
  { createQuestion }: ClientAdapter<Message>,
  recorder: Recorder,
  ask: Ask<Message>,
): Promise<void> {
  const compacted: Turn<Message>[] = []
  const [first, tools] = steps.compacted
  recorder.begin(first, replyWith('Rome, as I said.'))
  const summary = 'The user asked about the weather app. Rome is warmer than Oslo.'
  const text = `This session continues an earlier conversation. Its summary:\n${summary}\nWhich city was warmer?`
  await ask(first, compacted, createQuestion(text))
  recorder.begin(tools, ...useTools(8))
  await ask(tools, compacted, createQuestion('Check both cities again.'))
  const subAgent: Turn<Message>[] = []
  const [task, subAgentTools] = steps.subAgent
  recorder.begin(task, replyWith('There are three test files.'))
  await ask(task, subAgent, createQuestion('Count the test files of the project.'))
  recorder.begin(subAgentTools, ...useTools(10))
  await ask(subAgentTools, subAgent, createQuestion('Compare two cities for me.'))
  recorder.begin(steps.resumed[0], replyWith('Three test files.'))
  await ask(steps.resumed[0], compacted, createQuestion('How many test files did you find?'))
}
