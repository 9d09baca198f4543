// The frame of every view: breadcrumbs, and the view for the address.
import { Component } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Text } from "./ui.jsx";

const parts = () => location.hash.replace(/^#\/?/, "").split("/").filter(Boolean);

/** Shows an error in place of a view that fails. */
class Guard extends Component {
  state = { error: null };

  static getDerivedStateFromError(error) {
    return { error };
  }

  render() {
    const { error } = this.state;
    return error ? <p role="alert">This report cannot be shown: <Text>{error.message}</Text></p> : this.props.children;
  }
}

/** Scrolls to a section, opens it, and moves the focus there. */
function show(section) {
  const found = section && document.getElementById(section);
  if (!found) return;
  if (found.tagName === "DETAILS") found.open = true;
  found.scrollIntoView();
  (found.querySelector("h2, summary") ?? found).focus({ preventScroll: true });
}

/** Shows the view that `route` returns for the parts of the address. */
export function App({ route }) {
  const [path, setPath] = useState(parts());
  const [isMoved, setMoved] = useState(false);
  const { key, crumbs, section, view } = route(path);
  useEffect(() => {
    const move = () => {
      setMoved(true);
      setPath(parts());
    };
    addEventListener("hashchange", move);
    return () => removeEventListener("hashchange", move);
  }, []);
  useEffect(() => show(section), [path]);
  return (
    <>
      {crumbs.length > 0 && (
        <nav aria-label="Breadcrumb" class="crumbs">
          <ol>{crumbs.map(([href, text]) => <li key={href}><a href={href}><Text>{text}</Text></a></li>)}</ol>
        </nav>
      )}
      <Guard key={key}>{view(isMoved && !section)}</Guard>
    </>
  );
}
