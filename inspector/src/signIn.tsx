import { useState } from 'preact/hooks'
import { ApiError, readAccess, saveApiKey } from './api/client.ts'
import type { Access } from './api/types.ts'
import { TextField } from './components/fields.tsx'

/** Asks for an API key; the same keys as for the API, with the same rights. */
export function SignIn({ onSignIn }: { onSignIn: (access: Access) => void }) {
  const [key, setKey] = useState('')
  const [error, setError] = useState('')
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault()
    saveApiKey(key.trim())
    try {
      onSignIn(await readAccess())
    } catch (cause) {
      saveApiKey(undefined)
      setError(cause instanceof ApiError ? cause.message : String(cause))
    }
  }
  return (
    <main class="sign-in">
      <form class="card stack" onSubmit={(event) => void submit(event)}>
        <h1>Threadkeep</h1>
        <p class="muted">This server requires an API key. You see the tenants that the key may use.</p>
        <TextField label="API key" type="password" placeholder="tk_…" isRequired value={key} onInput={setKey} />
        {error !== '' && (
          <p class="danger" role="alert">
            {error}
          </p>
        )}
        <button type="submit" class="button primary">
          Sign in
        </button>
        <p class="hint">
          Create a key with <code>threadkeep keys create --scope NAME</code>. It stays in this tab and is forgotten when
          you close it.
        </p>
      </form>
    </main>
  )
}
