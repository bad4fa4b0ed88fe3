import { type ComparableMessage, isUser } from './messageEquality.ts'

/** The parts of a request that tell a user's turn from a program's own request. */
export type RequestShape = {
  readonly instructions: readonly string[]
  readonly messages: readonly ComparableMessage[]
  readonly hasTools: boolean
  readonly maxTokens: number | undefined
  readonly body?: Readonly<Record<string, unknown>>
}

const createVerb =
  '(?:generat|writ|creat|provid|produc|suggest|extract|propos|return|reply|respond|output|summari[sz]|com(?:e|ing) up|giv|mak)\\w{0,5}'
const conversation = '(?:conversations?|chats?|threads?|sessions?|dialog(?:ue)?s?|discussions?|transcripts?|messages?)'
const mentionsConversation = new RegExp(`\\b${conversation}\\b`, 'i')
/** Both patterns within 160 characters, in either order. */
const near = (one: string, other: string): string => `${one}[^]{0,160}\\b${other}|\\b${other}[^]{0,160}${one}`

/**
 * Tasks that programs run on a conversation for their own use. Users ask for titles and summaries too, but not of the
 * conversation itself, in a message that quotes it and prescribes a machine-readable answer.
 */
const tasks: readonly RegExp[] = [
  // title for a list of conversations
  new RegExp(`\\b(?:${near(`${createVerb}\\b[^]{0,80}\\b(?:titles?|names?|headlines?)`, conversation)})\\b`, 'i'),
  /\btitle (?:generator|creator|maker|writer)\b/i,
  // tags and mood
  new RegExp(`\\b(?:${near(`${createVerb}\\b[^]{0,60}\\b(?:tags?|labels?|keywords)`, conversation)})\\b`, 'i'),
  /\bspeaker\b[\s\S]{0,80}\bfitting emoji\b/i,
  // suggested next messages
  /\b(?:questions|prompts|messages|what) (?:that )?(?:the|a) user (?:might|may|could|would|will|is likely to)\b/i,
  // command safety
  /\bcommands? that an AI (?:coding )?agent wants to run\b|\bfile ?paths that (?:this|a|the) command\b/i,
]

/** Tasks in words that users also use for their own work; they count only next to a mention of a conversation. */
const ambiguousTasks: readonly RegExp[] = [
  new RegExp(`\\b${createVerb}\\b[^]{0,60}\\bfollow[- ]?ups?\\b`, 'i'),
  /\bauto-?complet(?:e|ion)\b/i,
  /\bnew (?:conversation |chat )?topic\b/i,
  // search queries
  /\bsearch quer(?:y|ies)\b|\bstandalone (?:question|query)\b/i,
  /\bprompt for an? image generation\b/i,
  // summary that replaces the conversation
  new RegExp(
    `\\b(?:summari[sz](?:e|es|ing|er)|summary of)\\b[^]{0,60}\\b${conversation}\\b|\\bconversation summari[sz]er\\b`,
    'i',
  ),
]

/** One word of each task. Most messages contain none and are not examined further. */
const taskHint =
  /titl|headlin|\bnames?\b|\btags?\b|label|keyword|topic|emoji|follow|\b(?:the|a) user\b|complet|quer(?:y|ies)|standalone|image|summar|command/i

const formHeading =
  /^[^\S\n\r\u2028\u2029]*#{1,4} ?(?:\*\*)?(?:task|instructions?|guidelines|rules|output)\b|^<(?:task|rules|instructions)>/im
const openField = /\n[A-Z][\w ]{2,30}:\s*$/
/** True for text laid out as a form: headings, a JSON example, or a field left to fill in. */
const isForm = (text: string): boolean =>
  formHeading.test(text) || openField.test(text) || /\{\s*["']\w+["']\s*:/.test(text)

/** Ways to prescribe the shape of the answer; the number of matches counts. */
const outputRules: readonly RegExp[] = [
  formHeading,
  openField,
  /\b(?:\d+|two|three|four|five|six|ten)(?:[ -](?:words?|chars?|characters?)\b| ?(?:-|–|to|or) ?(?:\d+|two|three|four|five|six|ten)[ -](?:words?|chars?|characters?)\b)|[≤<] ?\d+ (?:words|char)/i,
  /\b(?:only|just) (?:return|output|respond|reply|the|generate|include|write)\b|\b(?:return|output|respond|reply|answer)(?: \w+)? (?:only|just|exclusively)\b|\b(?:no|without)(?: any)? (?:other|additional|extra|further|lead-in|explanations?|quot|punctuation|commentary)|\bnothing else\b|\bdo not (?:use|include|add|answer|respond)\b/i,
  /\bJSON\b|\{\s*["']\w+["']\s*:/,
]

/** Marks of quoted input. */
const quotedInput = /<\/?(?:messages|history|chat|text|context)>|^[ \t]*messages?[ \t]*:/im
const introducedInput = /\b(?:following|below|starts with)\b[^\n]{0,300}(?::|\n)\s*\S/i
/** Marks of a quoted conversation. */
const quotedHistory =
  /<\/?(?:chat_history|conversation|transcript)>|^[ \t#*]*(?:chat history|conversation(?: history)?|transcript)[ \t*]*:/im
const speakerLine = /^[ \t]*\**(?:user|assistant|human|ai|system)\**[ \t]*:/i
const userLine = /^[ \t]*\**(?:user|human)\**[ \t]*:/im
const assistantLine = /^[ \t]*\**(?:assistant|ai)\**[ \t]*:/im
const minFormLength = 120
/** Cheap pre-check for a quoted conversation or a mention of the current one. */
const mayConcernConversation = (text: string): boolean =>
  text.includes(':') || /conversation|chat|thread|session|dialog|discussion|transcript/i.test(text)
/** Mention of the current conversation. */
const thisConversation =
  /\b(?:our|this|the)(?: \w+){0,2} (?:conversation|chat|thread|session|dialog(?:ue)?|discussion)\b/i

const suggestion = /^\s*\[suggestion mode\b/i
/** Connectivity probes. */
const probe = /^\W*(?:quota|test(?:ing)?|ping|hi|hello|hey)\W*$/i

/** Instructions about serving a user belong to a conversation, whatever else they ask for. */
const servesUser =
  /\b(?:answer|help|helps|assist|support|guide|teach|coach|friendly|after|when|whenever|once|then|also|finally|each|every|at the end|(?:talk|speak|chat)s? (?:to|with))\b/i

/** The naming of a conversation, as the task of instructions. */
const namingTask = new RegExp(
  `\\b(?:nam(?:e|es|ing)|titl(?:e|es|ing))\\b (?:for )?(?:an?|the|this|each) (?:\\w+ )?${conversation}\\b`,
  'i',
)
/** Fields of an answer that describes a conversation for a list. */
const labelField = /^(?:title|name|topic|is_?new_?topic|branch|slug|emoji|tags|labels|language)$/i

/** A task that works on the conversation of an agent, as the first words of instructions. */
const maintenanceRole =
  /^\W*(?:you are|you're|you act|act)\b[^.\n]{0,60}\b(?:memory (?:extract|consolidat|maintenance|updat)\w*|(?:context|conversation|history|chat|session) (?:summari[sz]|compact|compress)\w*|(?:summari[sz]|compact|compress)\w* (?:a|an|the|this) (?:\w+ )?(?:conversation|context|history|chat|session))/i
/** Mention of the model as a part of a program, or of another model that gets the result. */
const agentAudience =
  /\bsub-?agents?\b|\bcomponent\b|\b(?:another|next|other|coding|ai|the|main|parent) (?:\w+ )?(?:agent|assistant|llm|model)\b/i

/** Request for a summary of the whole conversation. */
const summaryOfAll = new RegExp(
  `\\b(?:summar(?:y|i[sz]\\w{1,4})|snapshot|compact(?:ion|ing)?|checkpoint)\\b[^]{0,80}\\b(?:${conversation}|context|task|work)\\b|\\b${conversation}\\b[^]{0,80}\\bsummar`,
  'i',
)
/** Purposes of a summary that replaces the conversation. */
const summaryReplaces =
  /\bfor (?:the )?continuation\b|\b(?:continu\w{1,4}|resum(?:e|es|ing)|pick up|carry on)\b[^.\n]{0,50}\b(?:work|tasks?|development|conversation|session|left off)\b|\bleft off\b|\bwithout losing\b[^.\n]{0,20}\bcontext\b|\bonly memory\b/i
/** Marks that no user writes: rules for tools, tags of the answer, and the vocabulary of context windows. */
const compactionMarks: readonly RegExp[] = [
  /\b(?:do not|don't|never|without) (?:call|use|using|calling|invoke)\b[^.\n]{0,20}\btools?\b|\btool (?:calls?|use|execution)\b[^.\n]{0,30}\b(?:rejected|disabled|forbidden|not allowed)\b/i,
  /<\/?(?:summary|analysis|state_snapshot|template|context_summary|prior-summary|previous-summary)>/i,
  /\bcompact(?:ion|ed|ing)\b|\bcontext (?:window|limit|checkpoint|overflow)\b|\b(?:handoff|anchored) summary\b/i,
]
const minCompactionLength = 200
/** The compaction prompts of agents have up to 7,000 characters. */
const maxCompactionLength = 9_000
/** Words before a summary that an agent hands over after compaction. */
const givesSummary =
  /\b(?:here is|below is|following is|produced|provided|wrote) (?:the |an? |your )?(?:\w+ ){0,3}summary\b|\bsummary (?:below|above)\b|\bis (?:being )?continued from\b/i
/** Work on a compaction prompt that the user has pasted. */
const editsPrompt =
  /\b(?:improve|review|rewrite|edit|fix|shorten|translate|explain|critique|compare|test)\b[^.\n]{0,60}\b(?:prompts?|instructions?|templates?)\b/i

/**
 * True for a program's own request: a title, tags, follow-up suggestions, search queries, a completion of what is being
 * typed, the compaction of a conversation, or the extraction of memories. Memory takes no part in it. In doubt, the
 * request is a turn.
 *
 * @example
 * const instructions = ['You are a title generator. Output only a title for the thread.']
 * isAuxiliaryRequest({ instructions, messages, hasTools: false, maxTokens: 50 }, { messages: 0 }) // true
 */
export function isAuxiliaryRequest(request: RequestShape, session: { readonly messages: number }): boolean {
  const newest = request.messages.at(-1)
  if (isDeclared(request.body?.metadata)) return true
  // Agents run such tasks with tools too, over several requests.
  if (request.instructions.some(isMaintenance)) return true
  const isUserTurn = newest !== undefined && isUser(newest)
  if (isUserTurn && suggestion.test(newest.content)) return true
  // A probe asks for a single token.
  if (isUserTurn && request.maxTokens === 1 && request.messages.length === 1 && probe.test(newest.content)) return true
  const hasInstructionsOnly = !request.hasTools && request.instructions.length > 0
  if (!isUserTurn && !hasInstructionsOnly) return false
  const text = bothEnds(newest?.content ?? '')
  return (
    (hasInstructionsOnly && isInstructed(request, text)) ||
    (isUserTurn && (isCompaction(request, newest.content) || isFilledForm(request, text, session.messages)))
  )
}

/** True for instructions that make the model maintain the memory or the context of an agent. */
function isMaintenance(instructions: string): boolean {
  const head = instructions.slice(0, 400)
  const role = maintenanceRole.exec(head)?.[0]
  return role !== undefined && !servesUser.test(role) && agentAudience.test(head) && mentionsConversation.test(head)
}

/**
 * True when the newest message ends with a request for a summary that replaces the conversation. An earlier prompt may
 * stand before it, because some agents join consecutive messages of the user.
 */
function isCompaction({ messages }: RequestShape, content: string): boolean {
  const text = content.slice(-maxCompactionLength)
  if (text.length < minCompactionLength || !/summar|compact|snapshot/i.test(text)) return false
  if (messages.length === 1 && !quotedHistory.test(text)) return false
  if (!summaryReplaces.test(text) || !compactionMarks.some((mark) => mark.test(text))) return false
  if (givesSummary.test(text)) return false
  const start = text.search(summaryOfAll)
  return start >= 0 && !editsPrompt.test(text.slice(0, start))
}

/** True when the client declares the task in its metadata. */
function isDeclared(metadata: unknown): boolean {
  if (typeof metadata !== 'object' || metadata === null) return false
  const { task } = metadata as { readonly task?: unknown }
  return (
    typeof task === 'string' && /^(?:title|tags|emoji|query|follow_up|autocomplete|image_prompt)_generation$/.test(task)
  )
}

/**
 * True when the instructions contain nothing but a task. After replies, the newest message must repeat the task,
 * because a real conversation may run under instructions that look like one.
 */
function isInstructed({ instructions, messages, body }: RequestShape, text: string): boolean {
  const hasReplies = messages.some(({ role }) => role === 'assistant')
  if (!hasReplies && answersWithLabels(body) && instructions.some((text) => namesConversation(text.slice(0, 400))))
    return true
  if (hasReplies && !taskHint.test(text)) return false
  return (
    instructions.some(
      (task) => isOnlyTask(task.slice(0, 400)) && (countOutputRules(bothEnds(task)) > 0 || isQuotedForSummary(text)),
    ) &&
    (!hasReplies || hasTask(text, true))
  )
}

/** True for a quoted conversation that a summary is to replace. */
const isQuotedForSummary = (text: string): boolean =>
  quotedHistory.test(text) && summaryOfAll.test(text) && summaryReplaces.test(text)

/** True when the answer must be JSON with nothing but labels, such as `{"title": "…"}`. */
function answersWithLabels(body: RequestShape['body']): boolean {
  const fields = Object.keys(readAnswerSchema(body)?.properties ?? {})
  return fields.length > 0 && fields.every((field) => labelField.test(field))
}

type AnswerSchema = { readonly properties?: Readonly<Record<string, unknown>> }
type AnswerFormat = { readonly schema?: AnswerSchema; readonly json_schema?: { readonly schema?: AnswerSchema } }

/** JSON schema of the answer, as each protocol states it. */
function readAnswerSchema(body: RequestShape['body']): AnswerSchema | undefined {
  const {
    output_config: messages,
    text: responses,
    response_format: chat,
  } = (body ?? {}) as {
    readonly output_config?: { readonly format?: AnswerFormat }
    readonly text?: { readonly format?: AnswerFormat }
    readonly response_format?: AnswerFormat
  }
  return messages?.format?.schema ?? responses?.format?.schema ?? chat?.json_schema?.schema
}

const namesConversation = (head: string): boolean => namingTask.test(head) || tasks.some((task) => task.test(head))

const isOnlyTask = (head: string): boolean => {
  if (!taskHint.test(head)) return false
  const indexes = [namingTask, ...tasksFor(mentionsConversation.test(head))].map((task) => head.search(task))
  const [first] = indexes.filter((index) => index >= 0).sort((a, b) => a - b)
  return first !== undefined && !servesUser.test(head.slice(0, first))
}

/** True when the newest message, `text`, is a form that a program filled in. */
function isFilledForm({ messages: said, hasTools, maxTokens }: RequestShape, text: string, messages: number): boolean {
  const isAlone = said.length === 1
  // After other messages it must clearly be a form about the conversation.
  if (!isAlone && (text.length < minFormLength || !mayConcernConversation(text))) return false
  if (!taskHint.test(text)) return false
  const lines = text.split('\n')
  const own = lines.filter((line) => !speakerLine.test(line)).join('\n')
  const hasHistory = quotedHistory.test(own) || (userLine.test(text) && assistantLine.test(text))
  if (!isAlone && (own.length < minFormLength || !(hasHistory || thisConversation.test(own)))) return false
  if (!hasTask(own, hasHistory && isForm(own))) return false
  const isBrief = maxTokens !== undefined && maxTokens <= 100
  const rules = countOutputRules(own) + (isBrief ? 1 : 0)
  if (!isAlone) return rules > 1
  // A single message must quote its input; one that relies on memory for it comes from a user.
  const isQuoting =
    hasHistory || lines.some((line) => speakerLine.test(line)) || quotedInput.test(own) || introducedInput.test(own)
  return isQuoting && rules >= (messages > 0 && !hasTools ? 1 : 2)
}

/** Start and end of a long text: a form states its task before or after the quoted input. */
const bothEnds = (text: string): string =>
  text.length <= 6_000 ? text : `${text.slice(0, 4_000)}\n${text.slice(-2_000)}`
const tasksFor = (concernsConversation: boolean): readonly RegExp[] =>
  concernsConversation ? [...tasks, ...ambiguousTasks] : tasks
const hasTask = (text: string, concernsConversation: boolean): boolean =>
  taskHint.test(text) && tasksFor(concernsConversation).some((task) => task.test(text))
const countOutputRules = (text: string): number => outputRules.filter((rule) => rule.test(text)).length
