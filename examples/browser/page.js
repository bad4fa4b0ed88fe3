// Stores what is typed, and shows the context that a model would get.
// Run: node serve.ts, then open the address that it prints.
// Loaded by index.html. A bundler resolves the import below; without one, the import map in index.html does.
import { openMemory } from 'threadkeep/browser'

const memory = await openMemory({ profile: 'ephemeral' })
const key = 'example.com:tab-1'
const form = document.querySelector('form')

form?.addEventListener('submit', async (event) => {
  event.preventDefault()
  const content = String(new FormData(form).get('text'))
  form.reset()
  await memory.append(key, [{ role: 'user', content }])
  const { text, ledger } = await memory.context(key, { budget: 500 })
  document.querySelector('pre')?.replaceChildren(text)
  document.querySelector('#tokens')?.replaceChildren(`${ledger.spent} of ${ledger.budget} tokens`)
})
