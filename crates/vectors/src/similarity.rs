//! Similarities: cosines on a scale on which 0 is that of an unrelated passage, and 1 that of the same text.

/// How the cosines of a vector become similarities. Their order stays.
#[derive(Debug, Clone, Copy)]
pub(super) struct SimilarityScale {
    /// The length of the vector.
    length: f32,
    /// The product of the vector with that of an unrelated passage.
    unrelated: f32,
}

impl SimilarityScale {
    /// Returns the scale of a vector. Where the mean vector of passages is not known, similarities are products.
    pub(super) fn of(vector: &[f32], mean_passage: Option<&[f32]>) -> Self {
        let unrelated = mean_passage.map_or(0.0, |mean| product(vector, mean));
        Self { length: product(vector, vector).sqrt(), unrelated }
    }

    /// Returns the similarity of a passage whose vector has this cosine with that of the scale.
    pub(super) fn of_cosine(self, cosine: f32) -> f32 {
        self.of_product(self.length * cosine)
    }

    /// Returns the similarity of another vector, whose length counts, to that of the scale.
    pub(super) fn similarity(self, vector: &[f32], other: &[f32]) -> f32 {
        self.of_product(product(vector, other))
    }

    fn of_product(self, product: f32) -> f32 {
        (product - self.unrelated) / (1.0 - self.unrelated).max(f32::EPSILON)
    }
}

/// Returns a vector at the length 1.
pub(super) fn direction(mut vector: Vec<f32>) -> Vec<f32> {
    let length = product(&vector, &vector).sqrt().max(f32::MIN_POSITIVE);
    vector.iter_mut().for_each(|value| *value /= length);
    vector
}

fn product(one: &[f32], other: &[f32]) -> f32 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}
