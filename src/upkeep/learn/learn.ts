import type { Json, Message } from '../../domain/entry.ts'
import { isObject } from '../../domain/error.ts'
import { type KnowledgeCategory, knowledgeCategories } from '../../domain/knowledge.ts'
import type { ChatMessage, Degradation } from '../../domain/ledger.ts'
import type { KnowledgePolicy } from '../../domain/profile.ts'
import { runInSlices, type Work } from '../../domain/work.ts'
import { findAnchors } from '../../text/anchors.ts'
import { repairJson } from '../../text/json.ts'
import { splitSentencesInSteps } from '../../text/sentences.ts'
import { extractTerms } from '../../text/words.ts'
import { type DraftDeps, factsByRules } from '../draft.ts'
import { constraintsKey } from '../extract/statements.ts'
import { callModel, type ModelCall } from '../modelCall.ts'
import { dataNotice, wrapAsData } from '../prompts.ts'
import { findInjections } from '../summarise/injectionCheck.ts'
import { hostPattern, learningRules, passingPattern } from './rules.ts'

/** Knowledge proposed for all sessions of a scope. */
export type KnowledgeProposal = {
  readonly category: KnowledgeCategory
  readonly key: string
  readonly value: Json
  readonly by: 'user' | 'assistant'
  readonly confidence?: number
  /** Ids of the messages that state it. */
  readonly messages: readonly string[]
}

const maxProposals = 8
const maxMessageChars = 16_384
const maxPromptChars = 32_000
const sentenceChars = { min: 15, max: 240 }
const maxKeyChars = 100
/** Proposals of a model below this confidence are not stored; none is stored with more than the upper one. */
const modelConfidence = { min: 0.4, max: 0.8 }
/** Share of the words of a model's proposal that the conversation must contain. */
const minGroundedTerms = 0.7
/** A message with this many words of a proposal counts as a source of it. */
const minSharedTerms = 2
/** Work per sentence beside its characters: dozens of patterns are tried on it. */
const sentenceWork = 40

/**
 * Proposes knowledge from the messages of a finished task. Tool output is not read: it may be a web page. The model is
 * called once, if there is one.
 */
export async function proposeKnowledge(
  messages: readonly Message[],
  policy: KnowledgePolicy,
  { modelCall, signal, pause }: DraftDeps,
): Promise<{ readonly knowledge: readonly KnowledgeProposal[]; readonly faults: readonly Degradation[] }> {
  const spoken = messages.filter((message) => isAllowed(message, policy))
  const preferences = (await factsByRules(spoken, pause)).flatMap(
    ({ field, key, value, source }): KnowledgeProposal[] =>
      policy.user !== 'no' &&
      (field === 'user_preferences' || (field === 'custom_fields' && key.startsWith(constraintsKey)))
        ? [{ category: 'user_preference', key, value, by: 'user', messages: [source.message] }]
        : [],
  )
  const byRules = selectDistinct([...preferences, ...(await runInSlices(proposeByRules(spoken), pause))])
  if (modelCall === undefined || spoken.length === 0) return { knowledge: byRules, faults: [] }
  const task = formatTask(spoken)
  const reply = await askModel(modelCall, task, signal)
  if ('fault' in reply) return { knowledge: byRules, faults: [{ step: 'knowledge', why: reply.fault }] }
  const by = policy.assistant === 'no' ? 'user' : 'assistant'
  const proposals = await runInSlices(parseProposals(reply.text, task, spoken, by), pause)
  return { knowledge: selectDistinct([...byRules, ...proposals]), faults: [] }
}

const isAllowed = ({ role }: Message, policy: KnowledgePolicy): boolean =>
  (role === 'user' || role === 'assistant') && policy[role] !== 'no'

/** Keeps the first proposal of each key. */
function selectDistinct(proposals: readonly KnowledgeProposal[]): readonly KnowledgeProposal[] {
  const distinct = new Map<string, KnowledgeProposal>()
  for (const proposal of proposals) {
    const slot = `${proposal.category} ${proposal.key.toLowerCase()}`
    if (!distinct.has(slot)) distinct.set(slot, proposal)
  }
  return [...distinct.values()].slice(0, maxProposals)
}

function* proposeByRules(messages: readonly Message[]): Work<readonly KnowledgeProposal[]> {
  const proposals: KnowledgeProposal[] = []
  for (const { id, role, content } of messages) {
    const text = content
      .slice(0, maxMessageChars)
      .replace(/```[^`]{0,8000}(?:```|$)|^>.{0,500}$/gm, '\n')
      // A sentence may begin with a host in lower case.
      .replace(/(?<=[.!]) (?=[a-z0-9-]{1,40}\.[a-z]{2,24}\b)/g, '\n\n')
    for (const { text: sentence } of yield* splitSentencesInSteps(text)) {
      const proposal = proposeBySentence(sentence.trim())
      if (proposal !== undefined) proposals.push({ ...proposal, by: role as 'user' | 'assistant', messages: [id] })
      yield sentence.length + sentenceWork
    }
  }
  return proposals
}

function proposeBySentence(value: string): Pick<KnowledgeProposal, 'category' | 'key' | 'value'> | undefined {
  if (!isLasting(value)) return undefined
  const rule = learningRules.find(({ patterns, subject }) =>
    [subject, ...patterns].every((pattern) => pattern.test(value)),
  )
  if (rule === undefined) return undefined
  const key = [hostPattern.exec(value)?.[0], rule.subject.exec(value)?.[0], ...findTopic(value)].filter(Boolean)
  return { category: rule.category, key: key.join(' ').slice(0, maxKeyChars).toLowerCase(), value }
}

/** Words that name the subject of a sentence without a host. */
const findTopic = (sentence: string): readonly string[] =>
  hostPattern.test(sentence) ? [] : extractTerms(sentence).slice(0, 3)

const isLasting = (sentence: string): boolean =>
  sentence.length >= sentenceChars.min &&
  sentence.length <= sentenceChars.max &&
  !sentence.endsWith('?') &&
  !passingPattern.test(sentence) &&
  findInjections(sentence).length === 0

function askModel(modelCall: ModelCall, task: string, signal: AbortSignal): ReturnType<typeof callModel> {
  const system = `You review a finished task of an agent and list what will help with later tasks.
Return a JSON list of at most ${maxProposals} entries, or [] if there is nothing:
[{ "category": "…", "key": "short name", "value": "one sentence", "confidence": 0.5 }]

Categories: ${knowledgeCategories.join(', ')}.
Only include what the user or the agent states and what stays true. Keep names, paths and selectors exactly as they are.
${dataNotice}`
  const prompt: readonly ChatMessage[] = [
    { role: 'system', content: system },
    { role: 'user', content: wrapAsData(task) },
  ]
  return callModel(modelCall, prompt, 16_000, signal)
}

/** Formats the end of what user and agent have said, and the calls of the agent. */
function formatTask(messages: readonly Message[]): string {
  const parts: string[] = []
  let chars = 0
  for (const { role, content, toolCalls = [] } of messages.toReversed()) {
    if (chars >= maxPromptChars) break
    parts.push([`${role}: ${content}`, ...toolCalls.map((call) => `called ${call.name}(${call.arguments})`)].join('\n'))
    chars += parts.at(-1)?.length ?? 0
  }
  return parts.reverse().join('\n').slice(-maxPromptChars)
}

/** Parses a model's proposals and keeps those that the task, as the model was shown it, states. */
function* parseProposals(
  text: string,
  task: string,
  messages: readonly Message[],
  by: KnowledgeProposal['by'],
): Work<readonly KnowledgeProposal[]> {
  const json = repairJson(text)
  const list: unknown = isObject(json) ? json.knowledge : json
  if (!Array.isArray(list)) return []
  const proposals = readProposals(list.slice(0, maxProposals), task)
  if (proposals.length === 0) return []
  yield task.length
  const termsOfMessages = yield* extractMessageTerms(messages)
  const ids = messages.map(({ id }) => id)
  return proposals.map((proposal) => {
    const stated = findStatements(proposal.value, termsOfMessages)
    return { ...proposal, by, messages: stated.length === 0 ? ids : stated }
  })
}

type ModelProposal = Pick<KnowledgeProposal, 'category' | 'key' | 'confidence'> & { readonly value: string }

function readProposals(list: readonly unknown[], task: string): readonly ModelProposal[] {
  const terms = new Set(extractTerms(task))
  return list.flatMap((item: unknown): ModelProposal[] => {
    if (!isObject(item)) return []
    const { key, value, confidence = modelConfidence.min } = item
    const category = knowledgeCategories.find((name) => name === item.category)
    if (category === undefined || typeof key !== 'string' || typeof value !== 'string') return []
    if (typeof confidence !== 'number' || !(confidence >= modelConfidence.min)) return []
    const isUsable =
      isLasting(value) && key.trim() !== '' && key.length <= maxKeyChars && findInjections(key).length === 0
    if (!isUsable || !isGrounded(value, task, terms)) return []
    return [{ category, key: key.trim(), value, confidence: Math.min(modelConfidence.max, confidence) }]
  })
}

/** Terms of each message by its id. */
type MessageTerms = ReadonlyMap<string, ReadonlySet<string>>

function* extractMessageTerms(messages: readonly Message[]): Work<MessageTerms> {
  const termsOfMessages = new Map<string, ReadonlySet<string>>()
  for (const { id, content } of messages) {
    const text = content.slice(0, maxMessageChars)
    termsOfMessages.set(id, new Set(extractTerms(text)))
    yield text.length
  }
  return termsOfMessages
}

/** Finds the messages that share words with a text. */
function findStatements(value: string, termsOfMessages: MessageTerms): readonly string[] {
  const own = new Set(extractTerms(value))
  return [...termsOfMessages]
    .filter(([, terms]) => [...own].filter((term) => terms.has(term)).length >= minSharedTerms)
    .map(([id]) => id)
}

/** True if every name, number and selector of a text, and most of its words, occur in the conversation. */
function isGrounded(value: string, source: string, terms: ReadonlySet<string>): boolean {
  const exact = value.match(/[#./[][\w/.=[\]-]{2,80}/g)?.map((place) => place.replace(/\.$/, '')) ?? []
  if ([...exact, ...findAnchors(value).map(({ text }) => text)].some((text) => !source.includes(text))) return false
  const own = extractTerms(value)
  return own.filter((term) => terms.has(term)).length >= minGroundedTerms * own.length
}
