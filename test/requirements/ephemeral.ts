import type { Row } from './row.ts'

const source = 'LightUp Session Memory'

export const ephemeral: readonly Row[] = [
  {
    id: 'E-01',
    source,
    behaviour:
      'Many sessions, each keyed `domain:tabId`, are isolated: what is said in one is never visible in another.',
    status: 'kept',
    in: ['src/stores/ram.ts'],
  },
  {
    id: 'E-02',
    source,
    behaviour:
      'A session lives in RAM only: no byte of it reaches a file, a database, a log or a child process, and a profile marked RAM-only refuses a durable store at open.',
    status: 'kept',
    in: ['src/open.ts', 'src/stores/ram.ts'],
  },
  {
    id: 'E-03',
    source,
    behaviour:
      'A session is cleared at once when the popup closes, the page navigates or the tab is removed; the user has `clearCurrentSession`, `clearAll` and `destroy`.',
    status: 'kept',
    in: ['src/adapters/session-memory.ts'],
  },
  {
    id: 'E-04',
    source,
    behaviour: 'Nothing is derived from an ephemeral session: no extracted entities, no facts, no knowledge.',
    status: 'kept',
    in: ['src/profiles/ephemeral.ts'],
  },
  {
    id: 'E-05',
    source,
    behaviour: 'Defaults: 50 messages, 2,000 tokens, the seed kept, a tail of 3.',
    status: 'kept',
    in: ['src/profiles/ephemeral.ts'],
  },
  {
    id: 'E-06',
    source,
    behaviour:
      'Seed–middle–tail context: the first message whole; the last three whole; the middle clipped to 100 characters with `...` and labelled `(Past) `, taken newest first while it fits. Settled: the output reads in conversation order (the printed code emits the seed last), a line `--- Recent Exchange ---` stands before the tail, with three messages or fewer nothing is repeated, and a clip never splits a surrogate pair or a grapheme.',
    status: 'kept',
    in: ['src/profiles/ephemeral.ts', 'src/context/allocateBudget.ts', 'src/context/frame.ts', 'src/text/clip.ts'],
  },
  {
    id: 'E-07',
    source,
    behaviour: 'Settled: the seed survives the cap of 50 messages, which evicts from the second message on.',
    status: 'kept',
    in: ['src/domain/admission.ts'],
  },
  {
    id: 'E-08',
    source,
    behaviour:
      'Settled: the context never exceeds its budget, headers and labels counted; a seed or a newest message that is too large is shortened, never left out.',
    status: 'kept',
    in: ['src/context/allocateBudget.ts'],
  },
  {
    id: 'E-09',
    source,
    behaviour: 'Settled: the question being asked is sent once, not both in the context and as the prompt.',
    status: 'kept',
    in: ['src/adapters/ai-service.ts', 'src/context/gatherCandidates.ts'],
  },
  {
    id: 'E-10',
    source,
    behaviour:
      'The system prompt has two framings: follow-up, which may refer to the conversation, and silent background for a new selection, which uses it and never mentions it.',
    status: 'kept',
    in: ['src/context/overhead.ts', 'src/context/frame.ts'],
  },
  {
    id: 'E-11',
    source,
    behaviour:
      "Token estimate `ceil(ascii/3.5 + nonAscii/1.5)`. Settled: the formula wins over the document's examples: it gives 4, 3 and 5, not 3, 4 and 5.",
    status: 'kept',
    in: ['src/text/estimators.ts'],
  },
  {
    id: 'E-12',
    source,
    behaviour:
      'A sweep every 30 minutes: sessions older than 24 h go, and over 100 sessions the oldest go. The host calls the sweep; the core owns no timer.',
    status: 'kept',
    in: ['src/memory.ts'],
  },
  {
    id: 'E-13',
    source,
    behaviour: '`getMetrics()` answers `{ usedTokens, totalTokens, isDistilled }`.',
    status: 'kept',
    in: ['src/adapters/session-memory.ts'],
  },
  {
    id: 'E-14',
    source,
    behaviour:
      "The class `SessionMemory` with the document's method names (`getSession`, `getSessionByKey`, `addUserMessage[ForKey]`, `addAssistantMessage[ForKey]`, `getContextString[ForKey]`, `clearCurrentSession`, `clearAll`, `destroy`, `getMetrics`) and a ready-made `sessionMemory` instance, as a thin face on the engine.",
    status: 'kept',
    in: ['src/adapters/session-memory.ts'],
  },
  {
    id: 'E-15',
    source,
    behaviour:
      'A unified AI service: `initialize(key, settings)` and `async* processText(request)`, which records the question, builds the context, streams the answer and records it; providers OpenAI, Gemini, xAI and a local server.',
    status: 'kept',
    in: ['src/adapters/ai-service.ts'],
  },
  {
    id: 'E-16',
    source,
    behaviour:
      'A real MV3 extension: select text on a page, popup, question, streamed answer, follow-up; the memory sits in the background worker.',
    status: 'planned',
  },
]
