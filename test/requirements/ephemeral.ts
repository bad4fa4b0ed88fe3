import type { Row } from './row.ts'

const source = 'LightUp Session Memory'

export const ephemeral: readonly Row[] = [
  {
    id: 'E-01',
    source,
    behaviour: 'Sessions keyed `domain:tabId` are isolated: the messages of one are never visible in another.',
    status: 'kept',
    in: ['src/stores/ram.ts'],
  },
  {
    id: 'E-02',
    source,
    behaviour:
      'Sessions live in RAM only: no byte reaches a file, a database, a log or a child process. A RAM-only profile refuses a durable store when it is opened.',
    status: 'kept',
    in: ['src/open.ts', 'src/stores/ram.ts'],
  },
  {
    id: 'E-03',
    source,
    behaviour:
      'All sessions of a tab are cleared at once when its popup closes, its page navigates or the tab is removed (`bindToTabs`, `clearTab`). Users can call `clearCurrentSession`, `clearAll` and `destroy`.',
    status: 'kept',
    in: ['src/adapters/session-memory.ts'],
  },
  {
    id: 'E-04',
    source,
    behaviour: 'No entities, facts or knowledge are derived from an ephemeral session.',
    status: 'kept',
    in: ['src/profiles/ephemeral.ts'],
  },
  {
    id: 'E-05',
    source,
    behaviour: 'Defaults: 50 messages, 2,000 tokens, the first message always included, a tail of 3.',
    status: 'kept',
    in: ['src/profiles/ephemeral.ts'],
  },
  {
    id: 'E-06',
    source,
    behaviour:
      'Seed–middle–tail context: the first message whole; the last three whole; the middle clipped to 100 characters with `...` and labelled `(Past) `, newest first while it fits. Settled: the output is in conversation order (the printed code emits the seed last), the line `--- Recent Exchange ---` precedes the tail, nothing is repeated with three messages or fewer, and clipping never splits a surrogate pair or a grapheme.',
    status: 'kept',
    in: [
      'src/profiles/ephemeral.ts',
      'src/context/allocateBudget.ts',
      'src/context/composeContext.ts',
      'src/text/clip.ts',
    ],
  },
  {
    id: 'E-07',
    source,
    behaviour: 'Settled: the first message survives the limit of 50 messages, which evicts from the second message on.',
    status: 'kept',
    in: ['src/domain/session.ts'],
  },
  {
    id: 'E-08',
    source,
    behaviour:
      'Settled: the context never exceeds its budget, headers and labels included. A first or newest message that is too large is shortened, never omitted.',
    status: 'kept',
    in: ['src/context/allocateBudget.ts'],
  },
  {
    id: 'E-09',
    source,
    behaviour: 'Settled: the current question is sent once, not both in the context and as the prompt.',
    status: 'kept',
    in: ['src/adapters/ai-service.ts', 'src/context/gatherCandidates.ts'],
  },
  {
    id: 'E-10',
    source,
    behaviour:
      'The system prompt has two framings: follow-up may refer to the conversation; silent background, for a new selection, uses the conversation without mentioning it.',
    status: 'kept',
    in: ['src/context/composeContext.ts'],
  },
  {
    id: 'E-11',
    source,
    behaviour:
      "Token estimate `ceil(ascii/3.5 + nonAscii/1.5)`. Settled: the formula takes precedence over the document's examples (4, 3 and 5 instead of 3, 4 and 5).",
    status: 'kept',
    in: ['src/text/estimators.ts'],
  },
  {
    id: 'E-12',
    source,
    behaviour:
      'A sweep every 30 minutes deletes sessions older than 24 h, and the oldest sessions above 100. The host calls the sweep; the core has no timers.',
    status: 'kept',
    in: ['src/memory.ts'],
  },
  {
    id: 'E-13',
    source,
    behaviour: '`getMetrics()` returns `{ usedTokens, totalTokens, isDistilled }`.',
    status: 'kept',
    in: ['src/adapters/session-memory.ts'],
  },
  {
    id: 'E-14',
    source,
    behaviour:
      "The class `SessionMemory` with the document's method names (`getSession`, `getSessionByKey`, `addUserMessage[ForKey]`, `addAssistantMessage[ForKey]`, `getContextString[ForKey]`, `clearCurrentSession`, `clearAll`, `destroy`, `getMetrics`) and a ready-made `sessionMemory` instance, as a thin wrapper around the engine. `getSession` and `getSessionByKey` start a session if there is none; `seedPreservation: false` treats the first message like the others.",
    status: 'kept',
    in: ['src/adapters/session-memory.ts'],
  },
  {
    id: 'E-15',
    source,
    behaviour:
      'A unified AI service: `initialize(key, settings)` and `async* processText(request)`, which stores the question, builds the context, streams the reply and stores it. Providers: OpenAI, Gemini, xAI and a local server.',
    status: 'kept',
    in: ['src/adapters/ai-service.ts'],
  },
  {
    id: 'E-16',
    source,
    behaviour:
      'An MV3 extension: select text on a page, open the popup, ask, read the streamed reply, ask a follow-up. Memory runs in the background worker.',
    status: 'planned',
  },
]
