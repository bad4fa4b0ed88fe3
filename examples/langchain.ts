// LangChain with memory: the chat model talks to Threadkeep instead of OpenAI.
// Run: npx threadkeep serve, and in another terminal: node langchain.ts
// Needs: npm install threadkeep @langchain/core @langchain/openai. In a checkout: npm start, then this file.
import { StringOutputParser } from '@langchain/core/output_parsers'
import { ChatPromptTemplate } from '@langchain/core/prompts'
import { ChatOpenAI } from '@langchain/openai'

const server = process.env.THREADKEEP_URL ?? 'http://127.0.0.1:4848'
const model = new ChatOpenAI({
  model: 'any',
  apiKey: 'any',
  configuration: { baseURL: `${server}/v1/demo:langchain` },
})
const chain = ChatPromptTemplate.fromMessages([
  ['system', 'You are a helpful assistant.'],
  ['human', '{question}'],
])
  .pipe(model)
  .pipe(new StringOutputParser())

// No message history in the chain: Threadkeep keeps it under the session key "demo:langchain".
await chain.invoke({ question: 'My cat is called Miso.' })
console.log(await chain.invoke({ question: 'What is my cat called?' }))
