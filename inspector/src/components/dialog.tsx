import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef, useState } from 'preact/hooks'

type DialogProps = { title: string; onClose: () => void; children: ComponentChildren }

/** A modal dialog; Escape closes it. */
export function Dialog({ title, onClose, children }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null)
  const titleId = useId()
  useEffect(() => {
    element.current?.showModal()
  }, [])
  return (
    <dialog ref={element} class="dialog" aria-labelledby={titleId} onClose={onClose}>
      <h2 id={titleId}>{title}</h2>
      {children}
    </dialog>
  )
}

type FormDialogProps = Omit<DialogProps, 'children'> & {
  /** Label of the button that submits. */
  action: string
  isDangerous?: boolean
  /** Performs the action; a failure is shown in the dialog. */
  onSubmit: (form: FormData) => Promise<void>
  children: ComponentChildren
}

/** A dialog with fields and one action. */
export function FormDialog({ title, action, isDangerous = false, onSubmit, onClose, children }: FormDialogProps) {
  const [error, setError] = useState('')
  const [isBusy, setIsBusy] = useState(false)
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault()
    setIsBusy(true)
    setError('')
    try {
      await onSubmit(new FormData(event.currentTarget as HTMLFormElement))
      onClose()
    } catch (cause) {
      setError(cause instanceof Error ? cause.message : String(cause))
      setIsBusy(false)
    }
  }
  return (
    <Dialog title={title} onClose={onClose}>
      <form class="stack" onSubmit={(event) => void submit(event)}>
        {children}
        {error !== '' && (
          <p class="danger" role="alert">
            {error}
          </p>
        )}
        <div class="row end">
          <button type="button" class="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class={`button ${isDangerous ? 'danger-solid' : 'primary'}`} disabled={isBusy}>
            {isBusy ? 'Working…' : action}
          </button>
        </div>
      </form>
    </Dialog>
  )
}
