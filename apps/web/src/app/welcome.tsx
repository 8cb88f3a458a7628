/** Shown when the page was opened without a link. */
export function Welcome() {
  return (
    <main class="welcome">
      <h1>Iris</h1>
      <p>This page needs a gateway and a token. Open the link that the gateway printed when it started, or give both:</p>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          const data = new FormData(event.currentTarget);
          const query = new URLSearchParams({ gateway: String(data.get('gateway')) });
          location.href = `?${query}#${new URLSearchParams({ token: String(data.get('token')) })}`;
          location.reload();
        }}
      >
        <label>
          Gateway <input name="gateway" required placeholder="wss://example.org/ws" />
        </label>
        <label>
          Token <input name="token" required type="password" autocomplete="off" />
        </label>
        <button type="submit">Open</button>
      </form>
    </main>
  );
}
