import './styles/tokens.css'
import './styles/base.css'
import './styles/components.css'
import { render } from 'preact'
import { App } from './app.tsx'

render(<App />, document.getElementById('app') as HTMLElement)
