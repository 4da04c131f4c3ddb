mod m {
    /// Of what?
}
