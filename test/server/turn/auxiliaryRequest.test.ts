import { describe, expect, it } from 'vitest'
import { isAuxiliaryRequest, type RequestShape } from '../../../src/server/turn/auxiliaryRequest.ts'

type RequestMessage = RequestShape['messages'][number]
const user = (content: string): RequestMessage => ({ role: 'user', content })
const reply = (content: string): RequestMessage => ({ role: 'assistant', content })
const emptyRequest: RequestShape = { instructions: [], messages: [], hasTools: false, maxTokens: undefined }

/** Requests with one message, with instructions, and after a first turn. */
const withMessage = (content: string, overrides: Partial<RequestShape> = {}): RequestShape => ({
  ...emptyRequest,
  messages: [user(content)],
  ...overrides,
})
const withInstructions = (
  instructions: string,
  content = 'How do I keep basil alive in winter?',
  overrides: Partial<RequestShape> = {},
): RequestShape => withMessage(content, { instructions: [instructions], ...overrides })
const afterFirstTurn = (content: string, overrides: Partial<RequestShape> = {}): RequestShape =>
  withMessage(content, {
    messages: [user('How do I keep basil alive in winter?'), reply('Give it light, and little water.'), user(content)],
    ...overrides,
  })

const basil = 'USER: How do I keep basil alive?\nASSISTANT: Give it light.'
const history = `### Chat History:\n<chat_history>\n${basil}\n</chat_history>`
const coder = "You are Coder, a vendor's official command-line tool."

/** Auxiliary requests in the style of existing programs, each sent after a first turn. */
const auxiliaryRequests: Readonly<Record<string, RequestShape>> = {
  'a web interface wants a title': withMessage(
    `### Task:\nGenerate a concise title of 3-5 words with an emoji for the chat history.\n### Output:\nJSON format: { "title": "…" }\n${history}`,
  ),
  'a web interface wants a title, in a later version': withMessage(
    `### Task:\nGenerate a short title summing up the chat.\n### Guidelines:\n- no quotation marks\n### Output:\nJSON: { "title": "" }\n${history}`,
  ),
  'a web interface wants tags': withMessage(
    `### Task:\nGenerate 1-3 broad tags for the main themes of the chat history.\n### Output:\nJSON format: { "tags": ["a", "b"] }\n${history}`,
  ),
  'a web interface wants follow-ups': withMessage(
    `### Task:\nSuggest 3-5 follow-up questions that the user might ask next in this conversation.\n### Output:\nJSON: { "follow_ups": [] }\n${history}`,
  ),
  'a web interface wants search queries': withMessage(
    `### Task:\nLook at the chat history and decide whether search queries are needed.\n### Output:\nRespond exclusively in JSON: { "queries": [] }\n${history}`,
  ),
  'a web interface completes what is typed': withMessage(
    `### Task:\nYou are an autocompletion system. Go on with the text in <text>.\n### Output:\nJSON: { "text": "…" }\n<type>General</type>\n<text>How do I</text>\n${history}`,
  ),
  'a web interface wants a picture described': withMessage(
    `### Task:\nGenerate a detailed prompt for an image generation task.\n### Output:\nJSON: { "prompt": "…" }\n${history}`,
  ),
  'a web interface wants an emoji': withMessage(
    `Your task is to show the speaker's mood by one fitting emoji. Reply only with the emoji.\n\nMessage:\n"""How lovely!"""`,
  ),
  'a chat client wants a title': withMessage(
    'Provide a concise title of 5 words or less for the conversation, in title case. Only return the title itself.\n\nConversation:\nUser: How do I keep basil alive?\nAI: Give it light.',
  ),
  'a chat client wants language and title, as a call of a function': withMessage(
    `Analyze this conversation and provide:\n1. The language of the conversation\n2. A concise title in that language (5 words or less, no punctuation)\n\nUser: Hallo\nAI: Guten Tag`,
    { hasTools: true },
  ),
  'a chat client wants a title of the first words': withMessage(
    'Please generate a concise title (max 40 characters) for a conversation that starts with:\nUser: How do I keep basil alive?\n\nTitle:',
  ),
  'an editor wants a title': withMessage(
    "Given the following, reply with a title for the chat that is 3-4 words in length, no additional text or explanation, you don't need ending punctuation.\n\nBasil needs light.",
    { maxTokens: 16 },
  ),
  'an editor wants a title, in a few tokens': withMessage(
    'Reply with a title for the following chat:\n\nBasil needs light.',
    { maxTokens: 20 },
  ),
  'an agent wants a title': withInstructions(
    'You are a title generator. You output ONLY a thread title. Nothing else.\n\n<task>\nGenerate a title to find this conversation by.\n</task>',
  ),
  'an agent wants a title, and sends the conversation': withInstructions(
    'You are a title generator. You output ONLY a thread title.',
    'x',
    {
      messages: [user('Generate a title for this conversation:'), user('How do I keep basil alive?')],
    },
  ),
  'another agent wants a title': withInstructions(
    'you will generate a short title based on the first message a user begins a conversation with\n- not more than 50 characters\n- do not use quotes',
  ),
  'a command-line agent wants a title': withMessage(
    `Please write a 5-10 word title for the following conversation:\n\n${basil}`,
    {
      instructions: [coder, 'Summarize this coding conversation in under 50 characters.\nCapture the main task.'],
    },
  ),
  'a command-line agent wants a title, without instructions': withMessage(
    'Please write a 5-10 word title for the following conversation:\n\nUser: hi\nAgent: hello',
  ),
  'a command-line agent asks whether the topic is new': withMessage('Now fix the tests', {
    instructions: [
      coder,
      "Analyze if this message indicates a new conversation topic. Format your response as a JSON object with 'isNewTopic' and 'title'.",
    ],
  }),
  'a command-line agent guesses what is typed next': afterFirstTurn(
    '[SUGGESTION MODE: Suggest what the user might type next.] Reply with the suggestion only.',
    {
      hasTools: true,
    },
  ),
  'a command-line agent asks about a command': withMessage('Command: git status', {
    instructions: [
      'Your task is to process Bash commands that an AI coding agent wants to run. ONLY return the prefix of the command.',
    ],
  }),
  'a command-line agent looks whether there is anybody': withMessage('quota', { maxTokens: 1 }),
  'an agent sums its conversation up': afterFirstTurn('Summarize the conversation so far, as described.', {
    instructions: [
      'Your task is to create a detailed summary of the conversation so far. Output only the summary, without any commentary.',
    ],
  }),
  'another agent sums its conversation up': afterFirstTurn('Now give a summary of our conversation to go on from.', {
    instructions: [
      'You are an AI assistant tasked with summarizing conversations.\nDo not respond to any questions in them, only output the summary.',
    ],
  }),
  'a desktop client wants a title': withInstructions(
    'You are a professional conversation summarizer. Generate a concise title that captures the essence of it.\n\nRules:\n- Output ONLY the title, no explanations\n- Maximum 10 words',
    'user: How do I keep basil alive?\nassistant: Give it light.',
  ),
  'another desktop client wants a title': withInstructions(
    'You are an assistant skilled in conversation. You need to summarize the conversation into a title of at most 10 words. Do not use punctuation.',
  ),
  'a phone client wants a title, behind the whole history': afterFirstTurn(
    'Please generate a four to five word title summarizing our conversation without any lead-in, punctuation, quotation marks, periods, symbols, bold text or additional text.',
  ),
  'a workflow tool wants a title': withInstructions(
    "Generate a concise, descriptive title for this conversation based on the user's message.\n\nRequirements:\n- 3 to 5 words\n- Only output the title",
  ),
  'a browser wants a title': withInstructions(
    'Generate a concise chat title using only the current user message.\n\nRules:\n- Fewer than 6 words\n- No quotes\n\nOutput: Only the title.',
  ),
  'a chain wants a question that stands alone': withMessage(
    'Given the conversation and a follow up question, rephrase the follow up question to be a standalone question.\n\nChat History:\nHuman: Hi\nAI: Hello\nFollow Up Input: And basil?\nStandalone question:',
  ),
  'a search engine wants a query': withInstructions(
    'You rephrase the last message into a search query. Return only the query, nothing else.',
    'And in winter?',
  ),
  'a chain wants its summary to go on': withMessage(
    `Summarize the lines of the conversation, adding to the summary so far.\n\nNew lines of conversation:\nHuman: Hi\nAI: Hello\n\nNew summary:`,
  ),
  'a chat client wants follow-ups, behind the whole history': afterFirstTurn(
    'Based on this conversation, write 3 short questions that the user might ask next. Return only a JSON array of them, without any explanations.',
  ),
  'a client says that it wants a title': withMessage('Basil', { body: { metadata: { task: 'title_generation' } } }),
  'a client says that it wants follow-ups': withMessage('Basil', {
    body: { metadata: { task: 'follow_up_generation', chat: 7 } },
  }),
  'a form in tags wants labels': withMessage(
    `<conversation>\n${basil}\n</conversation>\n<instructions>\nReturn up to 5 labels for this conversation as JSON: {"labels": []}\n</instructions>`,
  ),
}

const longWork = 'We moved the date parser, and two tests of leap years still fail. '
const compactionPrompt = `Answer in plain text. Do not call any tools: tool calls are rejected.

Write a thorough summary of the conversation so far, in <summary> tags after an <analysis>, so that development work can
continue without losing context. ${'Cover requests, files, errors, decisions and open tasks. '.repeat(60)}`

/** Requests of coding agents that maintain their own context, in the structure of the recorded ones. */
const maintenanceRequests: Readonly<Record<string, RequestShape>> = {
  'compaction by an agent with tools': afterFirstTurn(compactionPrompt, { hasTools: true }),
  'compaction in one message with the last prompt': afterFirstTurn(`And in summer?\n\n${compactionPrompt}`, {
    hasTools: true,
  }),
  'compaction in one message with a long prompt': afterFirstTurn(
    `Read this:\n${longWork.repeat(200)}\n${compactionPrompt}`,
    { hasTools: true },
  ),
  'compaction for another model': afterFirstTurn(
    'This is a context checkpoint. Write a handoff summary of the work for another LLM, which will resume the task.\n\nInclude:\n- progress\n- decisions\n- next steps\n\nBe brief and structured. Leave out greetings and small talk.',
    { instructions: ['You are a coding agent in a terminal.'] },
  ),
  'compaction in one paragraph': afterFirstTurn(
    'Please give a short summary of our conversation so far, with decisions and state, as one message that has all that is needed to continue our work. The system message need not be repeated. Say what was going on right before compaction, so that you can go on exactly where you left off.',
    { hasTools: true },
  ),
  'compaction of a quoted conversation': withInstructions(
    'You are a context summarization agent. You get a conversation between a user and an agent, and write a summary for another coding agent.',
    `<conversation>\n[User]: Hi\n[Assistant]: Hello\n</conversation>\n\nWrite an anchored summary in the form of <template>.`,
  ),
  'compaction of a conversation under a heading': withInstructions(
    'Summarize the given coding session as a note with next steps.',
    `Summarize this session for continuation.\n\n## Goal\nOne sentence.\n\n## Next\nSteps.\n\nConversation:\n${basil}`,
  ),
  'compaction by a component, behind the history': afterFirstTurn('First the <analysis>, then the snapshot.', {
    instructions: [
      'You are the component that summarizes a conversation before its context overflows. The summary is all that the agent remembers.',
    ],
  }),
  'memory extraction with tools': afterFirstTurn('Two folders hold memories. Scan the history and update them.', {
    hasTools: true,
    instructions: [
      'You are now the memory extraction subagent of an AI coding assistant. The conversation history is in your context.',
    ],
  }),
  'memory extraction, after a tool call': {
    ...emptyRequest,
    hasTools: true,
    instructions: [
      'You are now the memory extraction subagent of an AI coding assistant. The conversation history is in your context.',
    ],
    messages: [
      user('How do I keep basil alive?'),
      reply('Give it light.'),
      user('Scan the history and update the memories.'),
      { role: 'assistant', content: '', toolCalls: [{ id: 'a', name: 'read_file', arguments: '{}' }] },
      { role: 'tool', content: 'none', toolCallId: 'a' },
    ],
  },
  'a name for a session': withInstructions(
    `${coder}\nYou are naming a coding session for a list of sessions. The title is a noun phrase. Return JSON with one field.`,
    '<session>\nRename the parser\n</session>',
  ),
  'a title by a schema, in the Messages protocol': withInstructions(
    'Pick a title for this session from the words of the person.',
    '<session>\nRename the parser\n</session>',
    { body: { output_config: { format: { type: 'json_schema', schema: { properties: { title: {} } } } } } },
  ),
  'a title by a schema, in the chat protocol': withInstructions(
    'Pick a title for this session from the words of the person.',
    'Rename the parser',
    { body: { response_format: { json_schema: { schema: { properties: { title: {}, is_new_topic: {} } } } } } },
  ),
  'a title by a schema, in the Responses protocol': withInstructions(
    'Pick a title for this session from the words of the person.',
    'Rename the parser',
    { body: { text: { format: { type: 'json_schema', schema: { properties: { title: {} } } } } } },
  ),
}

/** Requests that are turns: user questions, and system prompts of the programs in between. */
const turns: Readonly<Record<string, RequestShape>> = {
  'a title for an essay': withMessage('Write me a title for my essay about the sea.'),
  'a title for an essay on conversations': withMessage(
    'Write a title for my essay about conversations in families. Max 5 words, only the title please.',
  ),
  'a title for an essay, pasted': withMessage(
    'Give me a short title for the following essay:\n\nThe sea is wide and nobody knows its end.',
  ),
  'a title for an essay, in the middle of a conversation': afterFirstTurn(
    'Now write a 5-word title for it. Only the title.',
  ),
  'a title for the conversation itself': afterFirstTurn('What would be a good title for our conversation?'),
  'a title for the conversation itself, in few words': afterFirstTurn(
    'Give me a title of 5 words for our conversation, nothing else.',
  ),
  'a title for the conversation that memory has': withMessage(
    'Give me a title of 5 words for our conversation. Only return the title, no quotes.',
  ),
  'a title for the conversation itself, in many words': afterFirstTurn(
    'Before I go to bed I thought about all you said, and now I wonder: could you give me a title for our conversation, so that I can put it on top of a page in my diary?',
  ),
  'a title for a conversation, of an agent with tools': withMessage(
    `Write a title of 5 words for the following conversation:\n\n${basil}`,
    { hasTools: true },
  ),
  'what somebody meant who wanted a title': withMessage(
    'What is meant here? Only reply in French.\n\nUSER: Generate a title for our conversation.\nASSISTANT: Sure.',
  ),
  'a summary of the conversation': afterFirstTurn('Please summarize our conversation so far.'),
  'a summary of the conversation that memory has': withMessage(
    'Summarize our conversation so far in 50 words, no extra text.',
  ),
  'a summary of a mail': withMessage(
    'Summarize the following mail in 50 words:\n\nDear all, the sea is wide. Yours, B.',
  ),
  'what else to ask': afterFirstTurn('Which follow-up questions should I ask my doctor? Suggest 3-5 of them.'),
  'a follow-up to somebody': afterFirstTurn(
    'Please write a follow-up email to Mr. Jones about the boiler we discussed. My policy number is 4711. Keep it under 150 words and do not use any jargon, he is 80 years old.',
  ),
  'a follow-up to somebody, whose data are pasted': withMessage(
    'Write a follow-up email to the following customer: John Smith, policy 4711, boiler broken since May. At most 100 words.',
  ),
  'a follow-up to a conversation': afterFirstTurn(
    'Write a follow-up message to Mr. Jones about our conversation on the boiler. At most 150 words, and do not use any jargon: he is 80 years old and hears badly.',
  ),
  'a field that completes itself': afterFirstTurn(
    'Add autocomplete to the city field of my form. It calls /api/cities and shows at most ten results. Return only the code, no explanations, and keep the JSON of the API.',
  ),
  'a search query that is slow': afterFirstTurn(
    'My search query on the orders table takes 9 seconds. Rewrite it to use the index on customer_id. Return only the SQL, and describe the plan as JSON. It has 4M rows.',
  ),
  'a search query that is slow, with its table': withMessage(
    'Rewrite my search query. Return only the SQL, no explanations.\n<context>\nCREATE TABLE orders (id INT, plan JSON)\n</context>',
  ),
  'names for cats': afterFirstTurn(
    'Write a name for each of my three cats. Do not use names from threads of Greek myths, only reply with messages of 5 words per cat please, nothing else at all, thanks.',
  ),
  'a summary for somebody else': afterFirstTurn(
    'Summarize our conversation so far for my boss, in 150 words, and do not use any jargon: he was not there and knows nothing at all about boilers or policies.',
  ),
  'a summary of a thread of mails': withMessage(
    'Summarize the following thread in 50 words, do not use any jargon:\n\nDear all, the sea is wide. Yours, B.\n\nDear B., it is. Yours, C.',
  ),
  'a picture to be painted': afterFirstTurn(
    'Write a prompt for an image generation model that shows a lighthouse in a storm at night. Only return the prompt, at most 50 words, without any commentary.',
  ),
  'another topic, in many words': afterFirstTurn(
    'A new topic: which herbs grow on a balcony that faces north? Answer in 50 words, do not use Latin names, and put it into a JSON list for my little program.',
  ),
  'tags for a post': withMessage('Generate 5 tags for my blog post about basil, as JSON: {"tags": []}'),
  'a search query': withMessage('How do I write a search query that finds exact phrases? Only show the query.'),
  'how to complete code': withMessage('Explain how autocompletion works in my editor.'),
  'a name for a chat room': withMessage('Suggest 10 names for our family chat, two words each.'),
  'an e-mail thread': withMessage('Reply to this thread politely, 50 words, no emojis:\n\nHi, where is my order?'),
  'a new topic': afterFirstTurn('New topic: let us talk about cats.'),
  'a task in Markdown': withMessage('### Task\nFix the parser.\n### Output\nOnly return the diff, no explanations.'),
  'a task about chat software': withMessage(
    '### Task\nAdd a field `title` to the table of chats, and a JSON endpoint that returns it.\n### Output\nOnly the diff.',
  ),
  'a transcript to be judged': withMessage(
    `Who is right here?\n\nUser: The sea is blue.\nAssistant: The sea is green.`,
  ),
  'a pasted conversation to be translated': withMessage(
    `Translate the following conversation into French, no comments:\n\n${basil}`,
  ),
  'a question about prompts': withMessage('Which questions do people ask about basil? Return only a list.'),
  'a poem in JSON': withMessage('Return a poem as JSON: {"title": "…", "lines": []}. Nothing else.'),
  'a short answer': withMessage('What is the capital of France?', { maxTokens: 16 }),
  'a yes or no': afterFirstTurn('Just say yes or no.', { maxTokens: 2 }),
  'a word of one token': withMessage('Is 17 prime? My name is Ann.', { maxTokens: 1 }),
  'a word of one token, after others': afterFirstTurn('Hello?', { maxTokens: 1 }),
  'a yes': withMessage('Yes', { maxTokens: 1 }),
  hello: withMessage('Hi'),
  'a helpful assistant': withInstructions('You are a helpful assistant.'),
  'an assistant that suggests what to ask next': withInstructions(
    'You are a helpful assistant. Answer the question, then suggest 3 follow-up questions the user might ask. Do not use emojis.',
  ),
  'an assistant that sums up': withInstructions(
    'You are Max, a travel planner. At the end, summarize the conversation in 50 words. Only reply in German.',
  ),
  'an assistant for support': withInstructions(
    'You support customers of a shop. Never answer in more than 50 words. Summarize the conversation when it ends.',
  ),
  'an assistant that writes titles of posts': withInstructions(
    'You write titles for blog posts. Return only the title, 5 words at most.',
    'A post on basil',
  ),
  'an assistant that writes search queries': withInstructions(
    'You write search queries for a shop of herbs. Return only the query, nothing else.',
    'Basil under 5 €',
  ),
  'an assistant that knows the name of the chat': withInstructions(
    'Chat title: Garden. Only respond in English, without any quotes.',
  ),
  'a poet': withInstructions('You summarize conversations of famous people in verse.', 'Goethe and Schiller'),
  'an agent with tools': withInstructions(
    'You are a coding agent. Generate titles for sessions with the tool. Only output code.',
    'Go on',
    { hasTools: true },
  ),
  'instructions that name the task late': withInstructions(
    `You are a writer of novels. ${'You know the sea well. '.repeat(40)} Write a title for each conversation. Nothing else.`,
  ),
  'a conversation under instructions that look like a task': afterFirstTurn('And in summer?', {
    instructions: ['Summarize conversations. Only output the summary.'],
  }),
  'a word that begins like a mode': withMessage('[suggestion] Add a dark mode'),
  'metadata of its own': withMessage('Basil', { body: { metadata: { task: 'write', user: '7' } } }),
  'a summary for another model': afterFirstTurn(
    'Summarize our conversation so far, so that I can continue the work with another model tomorrow. Include:\n- what we decided about the boiler and why\n- what remains to be done, with the names of the people\n- the numbers of all policies that I mentioned\nKeep it under 300 words.',
    { hasTools: true },
  ),
  'a compaction prompt to be improved': afterFirstTurn(`Improve this prompt of my agent:\n\n${compactionPrompt}`, {
    hasTools: true,
  }),
  'a bug in compaction': afterFirstTurn(
    'The compaction of my agent loses the newest message: after compaction the context window holds only the system prompt. Find the bug in compact.ts, fix it and add a test. Do not use any tools that write outside of src. The log says that 5 messages became 1, and the others are gone.',
    { hasTools: true },
  ),
  'work that goes on after compaction': withMessage(
    'This session is continued from a previous conversation that ran out of context. The summary below covers it.\n\n<summary>\nThe parser was moved; tests remain.\n</summary>\n\nContinue the work where it was left off, without asking.',
    { hasTools: true },
  ),
  'work that goes on after compaction, with its kept end': withMessage('x', {
    hasTools: true,
    messages: [
      user('The summary below covers the earlier conversation.\n<summary>\nThe parser was moved.\n</summary>'),
      reply('Two tests remain.'),
      user('Continue with the tests.'),
    ],
  }),
  'work that goes on after compaction, with the summary last': withMessage('x', {
    hasTools: true,
    messages: [
      user('Move the parser.'),
      user(
        `Another model started on this task and produced a summary of its work:\n${longWork.repeat(4)}\nContinue the work. The context window was full; do not use tools that delete files.`,
      ),
    ],
  }),
  'an assistant that sums up what people paste': withInstructions(
    'Summarize conversations from support.',
    `Conversation:\n${basil}`,
  ),
  'an assistant that extracts memories for people': withInstructions(
    'You are a memory extraction assistant for families. In this conversation, ask for old stories.',
    'My grandmother had a boat.',
    { hasTools: true },
  ),
  'an assistant that sums up for people': withInstructions(
    'You are a friendly chat summarizer. In this conversation you stand in for the other assistant.',
    'What did my sister write?',
    { hasTools: true },
  ),
  'an agent whose instructions mention memory late': withInstructions(
    'You are a coding agent. A memory extraction subagent reads this conversation later.',
    'Fix the parser.',
    { hasTools: true },
  ),
  'a title of a post by a schema': withInstructions('You write a title for a blog post.', 'Basil in winter', {
    body: { response_format: { json_schema: { schema: { properties: { title: {} } } } } },
  }),
  'an answer by a schema': withInstructions('Pick a title for this session, and answer the question.', 'Why?', {
    body: { response_format: { json_schema: { schema: { properties: { title: {}, answer: {} } } } } },
  }),
  'results of a tool': {
    ...emptyRequest,
    hasTools: true,
    messages: [{ role: 'tool', content: 'Generate a title for the conversation: only JSON', toolCallId: 'a' }],
  },
}

describe('auxiliary request', () => {
  it.each(Object.entries(auxiliaryRequests))('%s › is recognised', (_, ask) =>
    expect(isAuxiliaryRequest(ask, { messages: 2 })).toBe(true),
  )

  it.each(Object.entries(maintenanceRequests))('%s › is recognised in any session', (_, ask) =>
    expect([0, 40].map((messages) => isAuxiliaryRequest(ask, { messages }))).toEqual([true, true]),
  )

  it('in an empty session › only unmistakable ones are recognised', () => {
    const early = Object.entries(auxiliaryRequests).filter(([, ask]) => !isAuxiliaryRequest(ask, { messages: 0 }))
    // The others could be a user's first message.
    expect(early.map(([name]) => name)).toEqual([
      'a web interface wants an emoji',
      'an editor wants a title, in a few tokens',
      'a command-line agent wants a title, without instructions',
      'a chain wants a question that stands alone',
      'a chain wants its summary to go on',
    ])
  })
})

describe('turn', () => {
  it.each(Object.entries(turns))('%s › is a turn', (_, ask) =>
    expect(isAuxiliaryRequest(ask, { messages: 0 })).toBe(false),
  )
  it.each(Object.entries(turns))('%s, in a long session › is a turn', (_, ask) =>
    expect(isAuxiliaryRequest(ask, { messages: 40 })).toBe(false),
  )
  it('without messages › is a turn', () => expect(isAuxiliaryRequest(emptyRequest, { messages: 0 })).toBe(false))
})
