import { type ComparableMessage, isUser } from './messageEquality.ts'

/** A request, as far as it tells whether somebody speaks or a program asks for itself. */
export type Asked = {
  readonly instructions: readonly string[]
  readonly said: readonly ComparableMessage[]
  readonly hasTools: boolean
  readonly maxTokens: number | undefined
  readonly body?: { readonly metadata?: unknown }
}

const made =
  '(?:generat|writ|creat|provid|produc|suggest|extract|propos|return|reply|respond|output|summari[sz]|com(?:e|ing) up|giv|mak)\\w{0,5}'
const talk = '(?:conversations?|chats?|threads?|sessions?|dialog(?:ue)?s?|discussions?|transcripts?|messages?)'
const ofTalk = new RegExp(`\\b${talk}\\b`, 'i')
const either = (one: string, other: string): string => `${one}[^]{0,160}\\b${other}|\\b${other}[^]{0,160}${one}`

/**
 * What programs ask of a conversation for their own use. A person asks for titles and summaries as well, but not of the
 * very conversation, in a message that quotes it and says in which shape the answer is to be read by a machine.
 */
const wishes: readonly RegExp[] = [
  // a title in a list of conversations
  new RegExp(`\\b(?:${either(`${made}\\b[^]{0,80}\\b(?:titles?|names?|headlines?)`, talk)})\\b`, 'i'),
  /\btitle (?:generator|creator|maker|writer)\b/i,
  // what it is about, and how the speaker feels
  new RegExp(`\\b(?:${either(`${made}\\b[^]{0,60}\\b(?:tags?|labels?|keywords)`, talk)})\\b`, 'i'),
  /\bspeaker\b[\s\S]{0,80}\bfitting emoji\b/i,
  // what may be said next
  /\b(?:questions|prompts|messages|what) (?:that )?(?:the|a) user (?:might|may|could|would|will|is likely to)\b/i,
  // whether a command may run
  /\bcommands? that an AI (?:coding )?agent wants to run\b|\bfile ?paths that (?:this|a|the) command\b/i,
]

/** The same in words that people use of their work: they tell a program only where they are said of a conversation. */
const looseWishes: readonly RegExp[] = [
  new RegExp(`\\b${made}\\b[^]{0,60}\\bfollow[- ]?ups?\\b`, 'i'),
  /\bauto-?complet(?:e|ion)\b/i,
  /\bnew (?:conversation |chat )?topic\b/i,
  // what to look for
  /\bsearch quer(?:y|ies)\b|\bstandalone (?:question|query)\b/i,
  /\bprompt for an? image generation\b/i,
  // a summary in the place of the conversation
  new RegExp(
    `\\b(?:summari[sz](?:e|es|ing|er)|summary of)\\b[^]{0,60}\\b${talk}\\b|\\bconversation summari[sz]er\\b`,
    'i',
  ),
]

/** A word of each wish: most of what is said has none, and is not looked at any closer. */
const hint =
  /titl|headlin|\bnames?\b|\btags?\b|label|keyword|topic|emoji|follow|\b(?:the|a) user\b|complet|quer(?:y|ies)|standalone|image|summar|command/i

const heading = /^\s*#{1,4} ?(?:\*\*)?(?:task|instructions?|guidelines|rules|output)\b|^<(?:task|rules|instructions)>/im
const blank = /\n[A-Z][\w ]{2,30}:\s*$/
/** Whether a text is laid out as a form: with headings, fields to copy or a blank to be filled in. Hardly anybody writes like this. */
const isForm = (text: string): boolean => heading.test(text) || blank.test(text) || /\{\s*["']\w+["']\s*:/.test(text)

/** How a program says what shape the answer must have: it counts how many of these there are. */
const shapes: readonly RegExp[] = [
  heading,
  blank,
  /\b(?:\d+|two|three|four|five|six|ten)(?:[ -](?:words?|chars?|characters?)\b| ?(?:-|–|to|or) ?(?:\d+|two|three|four|five|six|ten)[ -](?:words?|chars?|characters?)\b)|[≤<] ?\d+ (?:words|char)/i,
  /\b(?:only|just) (?:return|output|respond|reply|the|generate|include|write)\b|\b(?:return|output|respond|reply|answer)(?: \w+)? (?:only|just|exclusively)\b|\b(?:no|without)(?: any)? (?:other|additional|extra|further|lead-in|explanations?|quot|punctuation|commentary)|\bnothing else\b|\bdo not (?:use|include|add|answer|respond)\b/i,
  /\bJSON\b|\{\s*["']\w+["']\s*:/,
]

/** A message that quotes a conversation brings along what it asks about. */
const quoted = /<\/?(?:messages|history|chat|text|context)>|^[ \t]*messages?[ \t]*:/im
const following = /\b(?:following|below|starts with)\b[^\n]{0,300}(?::|\n)\s*\S/i
/** Quoted so that it can be nothing but a conversation: under its name, or with both who speak in it. */
const history =
  /<\/?(?:chat_history|conversation|transcript)>|^[ \t#*]*(?:chat history|conversation(?: history)?|transcript)[ \t*]*:/im
const speaker = /^[ \t]*\**(?:user|assistant|human|ai|system)\**[ \t]*:/i
const asker = /^[ \t]*\**(?:user|human)\**[ \t]*:/im
const answerer = /^[ \t]*\**(?:assistant|ai)\**[ \t]*:/im
/** So many letters has a form at least. */
const leastForm = 120
/** Whether a text may quote a conversation, or speak of the one that it stands in: most do not, and are not looked at any closer. */
const mayTellTalk = (text: string): boolean =>
  text.includes(':') || /conversation|chat|thread|session|dialog|discussion|transcript/i.test(text)
/** The conversation that this message stands in. */
const thisTalk = /\b(?:our|this|the)(?: \w+){0,2} (?:conversation|chat|thread|session|dialog(?:ue)?|discussion)\b/i

const suggestion = /^\s*\[suggestion mode\b/i
/** What programs send to see whether anybody is there. */
const probe = /^\W*(?:quota|test(?:ing)?|ping|hi|hello|hey)\W*$/i

/** Instructions that go on to say how to treat somebody are those of a conversation, whatever else they ask for. */
const serving =
  /\b(?:answer|help|helps|assist|support|guide|teach|coach|friendly|after|when|whenever|once|then|also|finally|each|every|at the end|(?:talk|speak|chat)s? (?:to|with))\b/i

/**
 * Whether a request is no turn of the conversation, but a program's own: for a title, tags, what to say or to look for
 * next, or a completion of what is being typed. Memory takes no part in it. In doubt it is a turn.
 *
 * @example
 * isAuxiliaryRequest({ instructions: ['You are a title generator. Output only a title for the thread.'], said, hasTools: false, maxTokens: 50 }, { messages: 0 }) // true
 */
export function isAuxiliaryRequest(ask: Asked, session: { readonly messages: number }): boolean {
  const newest = ask.said.at(-1)
  if (isDeclared(ask.body?.metadata)) return true
  const isAsked = newest !== undefined && isUser(newest)
  if (isAsked && suggestion.test(newest.content)) return true
  // One token in return for such a word is a sign of life, not a reply.
  if (isAsked && ask.maxTokens === 1 && ask.said.length === 1 && probe.test(newest.content)) return true
  const isTold = !ask.hasTools && ask.instructions.length > 0
  if (!isAsked && !isTold) return false
  const text = ends(newest?.content ?? '')
  return (isTold && isInstructed(ask, text)) || (isAsked && isTemplate(ask, text, session.messages))
}

/** Some clients say what a request is for. */
function isDeclared(metadata: unknown): boolean {
  if (typeof metadata !== 'object' || metadata === null) return false
  const { task } = metadata as { readonly task?: unknown }
  return (
    typeof task === 'string' && /^(?:title|tags|emoji|query|follow_up|autocomplete|image_prompt)_generation$/.test(task)
  )
}

/** The instructions ask for nothing else; nor does the newest message, `text`, if there were replies: somebody may well talk under instructions that look like it. */
function isInstructed({ instructions, said }: Asked, text: string): boolean {
  const isTalk = said.some(({ role }) => role === 'assistant')
  if (isTalk && !hint.test(text)) return false
  return (
    instructions.some((told) => isWhollyWish(told.slice(0, 400)) && shapesIn(ends(told)) > 0) &&
    (!isTalk || isWished(text, true))
  )
}

const isWhollyWish = (head: string): boolean => {
  if (!hint.test(head)) return false
  const places = wishesIn(ofTalk.test(head)).map((wish) => head.search(wish))
  const [first] = places.filter((place) => place >= 0).sort((a, b) => a - b)
  return first !== undefined && !serving.test(head.slice(0, first))
}

/** The newest message, `text`, is a form that a program has filled in. */
function isTemplate({ said, hasTools, maxTokens }: Asked, text: string, messages: number): boolean {
  const isAlone = said.length === 1
  // With the conversation before it, it has to be a form indeed, and about that: people are brief, and seldom speak of it.
  if (!isAlone && (text.length < leastForm || !mayTellTalk(text))) return false
  if (!hint.test(text)) return false
  const lines = text.split('\n')
  const own = lines.filter((line) => !speaker.test(line)).join('\n')
  const hasHistory = history.test(own) || (asker.test(text) && answerer.test(text))
  if (!isAlone && (own.length < leastForm || !(hasHistory || thisTalk.test(own)))) return false
  if (!isWished(own, hasHistory && isForm(own))) return false
  const isBrief = maxTokens !== undefined && maxTokens <= 100
  const marks = shapesIn(own) + (isBrief ? 1 : 0)
  if (!isAlone) return marks > 1
  // Alone, it brings the conversation along; what relies on memory for it is somebody's own wish.
  const isQuoting = hasHistory || lines.some((line) => speaker.test(line)) || quoted.test(own) || following.test(own)
  return isQuoting && marks >= (messages > 0 && !hasTools ? 1 : 2)
}

/** A form says what it wants before or behind what it quotes. */
const ends = (text: string): string => (text.length <= 6_000 ? text : `${text.slice(0, 4_000)}\n${text.slice(-2_000)}`)
const wishesIn = (isOfTalk: boolean): readonly RegExp[] => (isOfTalk ? [...wishes, ...looseWishes] : wishes)
const isWished = (text: string, isOfTalk: boolean): boolean =>
  hint.test(text) && wishesIn(isOfTalk).some((wish) => wish.test(text))
const shapesIn = (text: string): number => shapes.filter((shape) => shape.test(text)).length
